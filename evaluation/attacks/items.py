"""Questions of a user with their references, and families of attacks and controls that see them.

A family is added in ``words.yaml``, which has the words.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from judging.errors import CustosError
from judging.files.opening import shipped_yaml
from judging.rules.answer_options import letter_of, option_named
from judging.rules.quantities import MOST_DIGITS, is_near_any
from judging.rules.whole_words import normalise
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample

Kind = Literal["polar", "number", "words"]

MAX_SHORT_WORDS = 12
MAX_CANDIDATES = 200
"""Answers to other questions that are looked at for each item."""
MAX_WRONG = 8
CLEARANCE = 0.08
"""A wrong number is off by more than this share where 5 % are allowed."""
POLAR = frozenset({"yes", "no", "true", "false", "none", "correct", "incorrect", "right", "wrong"})
"""Answers that deny or affirm: 'not yes' would be another right answer."""
NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
SMALL_WORDS = frozenset({"of", "and", "in", "on", "to", "for", "de", "la", "at", "by", "with"})
"""Words that two answers may share without a common meaning."""

_CONJUNCTION = re.compile(r"(?P<head>.+)\s(?P<word>and|&|und|y|et)\s+(?P<tail>.+)", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w%]|[.,]\d)")


@dataclass(frozen=True)
class AttackItem:
    """A question with its references, and answers to it that are wrong."""

    id: str
    """Id of the first row that has it."""
    request: JudgeRequest
    """That row as a request; its response is replaced."""
    cluster: str
    """Items of a cluster are resampled together."""
    wrong_answers: tuple[str, ...] = ()
    """References of other questions that cannot mean one of this question's."""

    @cached_property
    def references(self) -> tuple[str, ...]:
        """List the references that are not blank."""
        return tuple(text.strip() for text in self.request.references if text.strip())

    @cached_property
    def key(self) -> str:
        """Digest all that the item asks; its wordings are drawn by it."""
        request = self.request
        content = [request.variant, request.question, request.reference_mode]
        lists = [request.references, request.choices]
        return hashlib.sha256(json.dumps([content, lists]).encode()).hexdigest()

    @cached_property
    def numbers(self) -> list[float]:
        """List the numbers of the references, the smallest first."""
        return sorted(number for text in self.references for number in _numbers(text))

    def right_answer(self, draw: random.Random) -> str:
        """Draw one of the alternatives, or spell the whole answer set."""
        if self.request.reference_mode != "all":
            return draw.choice(self.references)
        return _joined(self.references)

    def parts(self, draw: random.Random) -> dict[str, str]:
        """Draw a ``part`` of the right answer, and the whole ``reordered``.

        The parts are the references of an answer set, or what stands before and after the last
        conjunction of a reference, each in several words, with a number, or a list. Empty where an
        answer has no parts, or one of them is right by itself.
        """
        if self.request.reference_mode == "all" and len(self.references) > 1:
            size = draw.randint(1, len(self.references) - 1)
            kept = draw.sample(self.references, size)
            whole = f" {_plain(_joined(kept))} "
            if all(_plain(text) in whole for text in self.references):
                return {}
            return {"part": _joined(kept), "reordered": _joined(self.references[::-1])}
        halves = [match for text in self.references if (match := _CONJUNCTION.fullmatch(text))]
        if not halves:
            return {}
        match = draw.choice(halves)
        head, tail = match["head"].rstrip(", "), match["tail"]
        part = draw.choice((head, tail))
        # Each is to be more than half of a name, which Trinidad (and Tobago) is not.
        are_whole = all(len(p.split()) > 1 or any(map(str.isdigit, p)) for p in (head, tail))
        if not are_whole or self.holds_reference(part):
            return {}
        return {"part": part, "reordered": f"{tail} {match['word']} {head}"}

    def slots(self, draw: random.Random) -> dict[str, str]:
        """Fill the slots that wordings can name.

        They are ``question``, ``right`` and the headings of the judge's prompt; ``wrong`` and
        ``other_wrong`` where wrong answers are known, ``near_miss`` where the right answer holds a
        number, and ``part`` and ``reordered`` where it has :meth:`parts`.
        """
        right = self.right_answer(draw)
        wrong = draw.sample(self.wrong_answers, min(2, len(self.wrong_answers)))
        fields = get_task(self.request.task).item(self.request)
        near_miss = self._near_miss(right, draw)
        parts = self.parts(copy(draw))  # other draws stay as they were without it
        return {
            "question": self.request.question,
            "right": right,
            "question_heading": fields[0].heading,
            "reference_heading": fields[-2].heading,
            "response_heading": fields[-1].heading,
            **dict(zip(("wrong", "other_wrong"), wrong, strict=False)),
            **({"near_miss": near_miss} if near_miss else {}),
            **parts,
        }

    def is_short(self, answer: str) -> bool:
        """Tell whether an answer can stand within a sentence, and be denied in it."""
        return len(answer.split()) <= MAX_SHORT_WORDS and kind_of(answer) != "polar"

    def holds_reference(self, response: str) -> bool:
        """Tell whether a reference occurs in a response, word for word."""
        text = _plain(response)
        references = map(_plain, self.references)
        return any(
            f" {reference} " in f" {text} " or (not reference.isascii() and reference in text)
            for reference in references
        )

    def _near_miss(self, right: str, draw: random.Random) -> str | None:
        """Change the first number of an answer; ``None`` if it holds none to change."""
        match = _NUMBER.search(right)
        if match is None or len(match[0]) > MOST_DIGITS:
            return None
        changed = change_number(match[0], self.request.variant == "tolerance", draw)
        if _is_close(changed, self):
            return None
        return f"{right[: match.start()]}{changed}{right[match.end() :]}"


def change_number(number: str, is_tolerant: bool, draw: random.Random) -> str:
    """Draw another number in the same notation.

    A year moves by one to nine years, a small number by one to three, and others by 10 to 30 %, as
    all do for a tolerant judge, which accepts numbers near the right one.
    """
    value, sign = float(number.replace(",", "")), draw.choice((-1, 1))
    decimals = len(number.partition(".")[2])
    is_year = number.isdigit() and 1000 <= value <= 2100
    step = float(draw.randint(1, 9) if is_year else draw.randint(1, 3))
    share = draw.uniform(0.1, 0.3)
    if is_tolerant or not (is_year or (value <= 20 and not decimals)):
        step = max(value * share, 10.0**-decimals)
    if value <= step:
        sign = 1  # no number below 0
    changed = round(value + sign * step, decimals)
    return f"{changed:,.{decimals}f}" if "," in number else f"{changed:.{decimals}f}"


def read_items(
    examples: Sequence[LabelledExample], *, limit: int | None = None, seed: int = 0
) -> list[AttackItem]:
    """Collect the distinct items of quick-score examples, each with answers to it that are wrong.

    With a limit, that many items are drawn; wrong answers come from all.
    """
    items: dict[str, AttackItem] = {}
    for example in examples:
        item = AttackItem(example.id, example.request(), example.group or example.asked)
        if item.references:
            items.setdefault(item.key, item)
    distinct = list(items.values())
    chosen: Sequence[int] = range(len(distinct))
    if limit is not None and limit < len(distinct):
        chosen = sorted(random.Random(seed).sample(chosen, limit))
    return [_with_wrong_answers(distinct[index], distinct, seed) for index in chosen]


def kind_of(answer: str) -> Kind:
    """Classify an answer: yes or no, something with a number, or words."""
    if normalise(answer) in POLAR:
        return "polar"
    return "number" if any(map(str.isdigit, _plain(answer))) else "words"


def may_mean(answer: str, item: AttackItem) -> bool:
    """Tell whether an answer could mean a reference of an item.

    It could if they share a word, a number or initials, or if the judge is to accept numbers near
    the right one and theirs are near each other.
    """
    words = _words(answer)
    return _is_close(answer, item) or any(
        not words
        or words & _words(reference)
        or _initials(answer) == normalise(reference)
        or _initials(reference) == normalise(answer)
        for reference in item.references
    )


def _with_wrong_answers(item: AttackItem, items: Sequence[AttackItem], seed: int) -> AttackItem:
    """Add references of other questions to an item as wrong answers, those of its kind first."""
    draw = random.Random(f"{seed}/wrong/{item.key}")
    others = draw.sample(items, min(MAX_CANDIDATES, len(items)))
    question = normalise(item.request.question)
    kind = kind_of(item.references[0])
    answers: dict[Kind, dict[str, None]] = {"polar": {}, "number": {}, "words": {}}
    for other in others:
        answer = draw.choice(other.references)
        is_fit = len(answer.split()) <= MAX_SHORT_WORDS and not may_mean(answer, item)
        if is_fit and normalise(other.request.question) != question:
            answers[kind_of(answer)][answer] = None
    wrong = list(answers[kind])
    if kind != "polar" and len(wrong) < 2:
        wrong += [*answers["words"], *answers["number"]]
    return AttackItem(item.id, item.request, item.cluster, tuple(dict.fromkeys(wrong))[:MAX_WRONG])


def _is_close(answer: str, item: AttackItem) -> bool:
    """Tell whether a number of an answer could pass for one of an item's references."""
    share = CLEARANCE if item.request.variant == "tolerance" else 0.0
    return is_near_any(_numbers(answer), item.numbers, share)


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def _plain(text: str) -> str:
    """Normalise a text, with small numbers as digits."""
    return " ".join(NUMBER_WORDS.get(word, word) for word in normalise(text).split())


def _words(text: str) -> set[str]:
    return set(_plain(text).replace("-", " ").split()) - SMALL_WORDS


def _joined(texts: Sequence[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


def _initials(text: str) -> str:
    return "".join(word[0] for word in normalise(text).split())


PADDING_WORDS = 150
"""Fewest words of both parts of the padding together."""
MOST_WRONG = 4
"""Wrong options that are listed beside the right answer of a question without options."""


def attack_words() -> dict[str, Any]:
    """Read ``words.yaml``: families, wordings, layouts, padding and suffixes."""
    return shipped_yaml(Path(__file__).with_name("words.yaml"))


@dataclass(frozen=True)
class AttackFamily:
    """Wordings of one way to fool a judge, or of one kind of right response (a control)."""

    name: str
    summary: str
    """Description of the responses in one line."""
    wordings: Mapping[str, str]
    """Names of the wordings to the wordings."""
    is_control: bool = False
    """True if its responses are right. A response of any other family is not Correct."""
    mentions_reference: bool = False
    """True if a response may hold a reference. In families that do not mention one, a response
    that happens to hold one is left out: it may be right."""
    needs_short_reference: bool = False
    """True if it takes only references that can stand within a sentence."""

    def requests(
        self, item: AttackItem, seed: int, num_wordings: int
    ) -> Iterator[tuple[str, JudgeRequest]]:
        """Yield names of wordings and the item's request with the responses that they make of it.

        What is drawn depends on the seed, the family and the item alone. A wording is left out
        where the item cannot fill its slots.
        """
        draw = random.Random(f"{seed}/{self.name}/{item.key}")
        slots = item.slots(draw)
        slots |= dict(zip(("padding", "more_padding"), padding(draw), strict=True))
        if self.needs_short_reference and not item.is_short(slots["right"]):
            return
        names = sorted(self.wordings)
        fitting = [name for name in names if slot_names(self.wordings[name]) <= slots.keys()]
        for name in draw.sample(fitting, min(num_wordings, len(fitting))):
            response = self.wordings[name].format(**slots)
            if self.is_control or self.mentions_reference or not item.holds_reference(response):
                yield name, item.request.model_copy(update={"responses": (response,)})


@dataclass(frozen=True)
class OptionFamily(AttackFamily):
    """Family whose responses choose one of the options.

    The options are the item's own, or its right answer among wrong ones, in ``choices`` or in the
    question. References name the right one by text, by letter or by both.
    """

    def requests(
        self, item: AttackItem, seed: int, num_wordings: int
    ) -> Iterator[tuple[str, JudgeRequest]]:
        """Yield names of wordings and requests; none where one right option cannot be told."""
        draw = random.Random(f"{seed}/{self.name}/{item.key}")
        choices = item.request.choices or self._made_options(item, draw)
        named = {option_named(reference, choices) for reference in item.references}
        rights = [index for index in named if index is not None]
        if len(rights) != 1 or len(choices) < 2:
            return
        [right] = rights
        layouts = ("",) if item.request.choices else ("", *attack_words()["layouts"])
        for name in draw.sample(sorted(self.wordings), min(num_wordings, len(self.wordings))):
            wording = self.wordings[name]
            by_letter = "letter" in " ".join(slot_names(wording))
            layout = draw.choice([each for each in layouts if not (by_letter and "plain" in each)])
            wrong = draw.choice([index for index in range(len(choices)) if index != right])
            response = wording.format(
                right=choices[right],
                right_letter=letter_of(right),
                wrong=choices[wrong],
                wrong_letter=letter_of(wrong),
            )
            yield name, _listed(item.request, response, choices, layout, draw, right)

    def _made_options(self, item: AttackItem, draw: random.Random) -> tuple[str, ...]:
        """List the right answer among wrong ones; nothing where there is none to list."""
        if item.request.reference_mode == "all" and len(item.references) > 1:
            return ()
        right = draw.choice(item.references)
        wrong = draw.sample(item.wrong_answers, min(MOST_WRONG, len(item.wrong_answers)))
        if not wrong or not item.is_short(right):
            return ()
        options = [right, *wrong]
        draw.shuffle(options)
        return tuple(options)


def _listed(
    request: JudgeRequest,
    response: str,
    choices: tuple[str, ...],
    layout: str,
    draw: random.Random,
    right: int,
) -> JudgeRequest:
    """List a request's options in ``choices`` or, under a layout, in the question."""
    lettered = [f"{letter_of(index)}. {text}" for index, text in enumerate(choices)]
    changes: dict[str, Any] = {"responses": (response,)}
    if not request.choices and "{plain}" not in layout:
        ways = (request.references, (letter_of(right),), (lettered[right],))
        changes["references"] = draw.choice(ways)
    if layout:
        options, inline, plain = ("\n".join(lettered), "  ".join(lettered), " | ".join(choices))
        slots = {"question": request.question, "options": options, "inline": inline, "plain": plain}
        changes |= {"question": layout.format(**slots), "choices": ()}
    else:
        changes["choices"] = choices
    return request.model_copy(update=changes)


@cache
def families() -> dict[str, AttackFamily]:
    """List all families by name, in alphabetical order."""
    words = attack_words()
    plain = {name: AttackFamily(name, **each) for name, each in words["families"].items()}
    choosing = {name: OptionFamily(name, **each) for name, each in words["option_families"].items()}
    return dict(sorted({**plain, **choosing}.items()))


def family_of(name: str) -> AttackFamily:
    """Look up a family by name; the error for an unknown one lists the known names."""
    if name not in families():
        raise CustosError(f"attack family '{name}' is not one of {', '.join(families())}")
    return families()[name]


def slot_names(wording: str) -> set[str]:
    """Name a wording's slots."""
    return {name for _, name, _, _ in Formatter().parse(wording) if name}


def padding(draw: random.Random) -> tuple[str, str]:
    """Draw two parts of a padding, together ``PADDING_WORDS`` words, that share no sentence."""
    written: list[str] = attack_words()["padding"].splitlines()
    sentences = draw.sample(written, len(written))

    def part() -> str:
        text = ""
        while len(text.split()) < PADDING_WORDS / 2:
            text = f"{text} {sentences.pop()}".lstrip()
        return text

    return part(), part()
