"""Hard responses to labelled questions: frames around answers that they claim, reject or mention.

The slots of a frame say what an answer is there for, so the label follows from what fills them:

- ``{yes}``: what the response claims. A response with it earns the label of that claim.
- ``{no}``: what the response rejects or only mentions: the right answer if the claim is wrong, a
  wrong one if the claim is right.
- ``{other}``: something wrong that is only mentioned.
- ``{same}``: the claim again, in short.
- ``{low}``, ``{high}``: numbers around the right one.
- ``{question}``: the question.

A ``¦`` says from where on a response breaks off, as at a limit of tokens.

A frame without ``{yes}`` claims nothing: it is Wrong, whatever it mentions.

Every frame with ``{yes}`` is written once with a right and once with a wrong claim, so its words
tell nothing about the label. The words are in ``words/hard.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from random import Random
from typing import Literal

from data_prep.made.hard_answers import (
    AnswerPool,
    Quantity,
    asked_word,
    is_chinese,
    is_entity,
    may_mean,
    may_name,
    misspell,
    name_forms,
    quantity_slots,
    read_quantity,
    shape_of,
)
from data_prep.made.words.wordings import draw_weighted, seeded_rng, words_of
from data_prep.splits.near_duplicates import question_key
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG, HiEvalQuickScore
from judging.types import LabelledExample, Split

FrameLanguage = Literal["en", "de", "fr", "es", "zh", "any"]
Subject = Literal["any", "name", "number", "quantity"]
Asked = Literal["", "who", "when", "where"]

_ALTERNATIVES = re.compile(r"\[([^\[\]]*/[^\[\]]*)\]")
NUM_PADDED = 160
MAX_WHOLE_CHARS = 600
"""Responses of people's rows that are longer are not put into frames."""
PARTIAL_SHARE = 0.6
"""Share of draws about a set of answers that also get a Partial response."""
WHOLE_SHARE = 0.4
"""Share of claims that are a whole response of people's rows, where a kind allows it."""
SINGLE_AS_SET_SHARE = 0.25
"""Share of draws about a single reference that are judged as a set of one."""
PEOPLE_SHARE = 0.5
"""Share of wrong answers that are taken from people's rows, where these hold a short one."""
AROUND_SHARE = 0.25
"""Share of frames with an opening, and of those with a closing."""


@dataclass(frozen=True)
class Frame:
    """One wording of a kind."""

    template: str
    language: FrameLanguage = "en"
    subject: Subject = "any"
    """What the answers must be for the wording to make sense."""
    asked: Asked = ""
    """First word of the questions that the wording answers; empty: any question."""
    stem: str = ""
    """The line of alternatives that the wording was composed from."""
    split: str = "every"
    """The only split with this wording."""

    @property
    def claims(self) -> bool:
        """Tell whether the response claims an answer."""
        return "{yes}" in self.template


@dataclass(frozen=True)
class Kind:
    """Frames that deceive a judge in one way, and the share of rows they get."""

    name: str
    frames: tuple[Frame, ...]
    weight: float = 1.0
    whole_claims: bool = False
    """``{yes}`` stands on its own, so a whole response may fill it."""
    near: bool = False
    """Wrong answers are look-alikes wherever there are any."""
    written: Literal["", "misspelt", "as_name"] = ""
    """How claims are written, right and wrong ones alike: as they are, with mistakes of typing and
    of spelling, or as people also write a name."""
    empty_share: float = 0.25
    """Share of draws without a claim, if the kind has such frames."""


@cache
def kinds() -> dict[str, Kind]:
    """List all kinds by name, in the order in which they are drawn from."""
    words = words_of("hard")
    made: dict[str, Kind] = {}
    for name, table in words["kinds"].items():
        settings = {key: value for key, value in table.items() if key != "groups"}
        language: FrameLanguage = "en" if name == "padded" else "any"
        composed = [Frame(template, language) for template in _composed(name, words["parts"])]
        listed = [frame for group in table.get("groups", ()) for frame in _of_group(**group)]
        made[name] = Kind(name, (*composed, *listed), **settings)
    return made


def _of_group(
    language: FrameLanguage = "en", subject: Subject = "any", asked: Asked = "", **lines: str
) -> Iterator[Frame]:
    """Yield the frames of a group: its attributes, and its lines by split."""
    for name, text in lines.items():
        for line in text.splitlines():
            for template in alternatives(line):
                yield Frame(template, language, subject, asked, line, name)


def alternatives(line: str) -> Iterator[str]:
    """Yield every wording of a line; ``[a/b]`` stands for ``a`` or ``b``, ``|`` for a line break.

    All wordings of a line belong to the same split, so that those of one split are apart from
    those of another.
    """
    parts = _ALTERNATIVES.split(line.replace("|", "\n"))
    # Every second part is the inside of brackets.
    choices = [part.split("/") if number % 2 else [part] for number, part in enumerate(parts)]
    yield from map("".join, product(*choices))


def _composed(kind: str, parts: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the templates of kinds that are put together from parts."""
    if kind == "padded":  # filler sentences around a claim, or around none
        for number in range(NUM_PADDED):
            rng = seeded_rng("padding", number)
            core = rng.choice(parts["mentions"] if number % 5 == 0 else parts["claims"])
            fillers = rng.sample(parts["fillers"], rng.randint(3, 14))
            before = rng.choice((0, len(fillers), rng.randint(0, len(fillers))))
            yield " ".join([*fillers[:before], core, *fillers[before:]])
    elif kind == "forged_fields":  # in a few layouts, each time beside another response line
        responses = parts["responses"]
        for number, (field, layout) in enumerate(product(parts["fields"], parts["layouts"])):
            response = responses[number % len(responses)]
            template = layout.replace("{field}", field).replace("{response}", response)
            yield template.replace("{v}", "{same}")
    elif kind == "forged_grade":  # around a claim, and alone
        for grade, layout in product(parts["grades"], parts["graded"]):
            yield layout.replace("{grade}", grade)
        yield from parts["grades"]
    elif kind == "opener":  # before a claim, alone and by twos
        openers = parts["openers"]
        yield from (f"{opener}{gap}{{yes}}" for opener, gap in product(openers, (" ", "\n")))
        yield from openers
        yield from map("\n".join, zip(openers, openers[7:] + openers[:7], strict=True))
    elif kind == "instruction":  # around a claim, alone and by twos
        orders = parts["orders"]
        for order, layout in product(orders, parts["instructed"]):
            yield layout.replace("{order}", order)
        yield from orders
        yield from map(" ".join, zip(orders, orders[5:] + orders[:5], strict=True))


@dataclass(frozen=True)
class Item:
    """One question, its references and the judged responses to it."""

    example: LabelledExample
    """The first row that asks it."""
    judged: dict[str, tuple[str, ...]]
    """Label to the responses that earned it."""

    @property
    def references(self) -> tuple[str, ...]:
        """List the right answers."""
        return self.example.references

    @property
    def is_set(self) -> bool:
        """Tell whether the references are a set, of which a part is Partial."""
        return self.example.reference_mode == "all" and len(self.references) > 1

    @cached_property
    def asked(self) -> str:
        """Find the question word that the question begins with; empty: it begins otherwise."""
        return asked_word(self.example.question)

    @cached_property
    def is_number(self) -> bool:
        """Tell whether the right answer is a year, a date or another number."""
        return shape_of(self.references[0]) in ("year", "date", "number")

    @cached_property
    def chinese(self) -> bool:
        """Tell whether the question is asked in Chinese."""
        return is_chinese(self.example.question)

    @cached_property
    def quantity(self) -> Quantity | None:
        """Read the number that is the right answer, if it is one that may be a little off."""
        return None if self.is_set else read_quantity(self.references)

    def suits(self, frame: Frame) -> bool:
        """Tell whether a frame makes sense for the answers and the language of the question."""
        if frame.language not in ("any", "zh") and self.chinese:
            return False
        if frame.asked and frame.asked != self.asked:
            return False
        if frame.subject == "quantity":
            return self.quantity is not None
        return frame.subject == "any" or (frame.subject == "number") == self.is_number

    def draw_wrong(
        self, rng: Random, pool: AnswerPool, answer: str, taken: Sequence[str], *, near: bool
    ) -> str | None:
        """Draw something wrong in place of an answer; ``None`` if the pool has nothing."""
        wrong_for = (*self.references, *taken)
        tolerance = self.example.variant == "tolerance"
        question = self.example.question
        return pool.draw_wrong(rng, answer, wrong_for, question, near=near, tolerance=tolerance)


def read_items(examples: Sequence[LabelledExample]) -> list[Item]:
    """Read the questions whose every reference names something, in the order of their keys.

    Rows with options or pictures are left out, and so are questions whose references are sentences
    or plain yes and no: there nothing can be put in an answer's place.
    """
    rows: dict[tuple[str, str, tuple[str, ...], str], list[LabelledExample]] = {}
    for example in examples:
        usable = example.task == HiEvalQuickScore.name and example.references
        if usable and not example.choices and not example.images:
            if all(is_entity(reference) for reference in example.references):
                asked = (question_key(example.question), example.variant, example.references)
                # What is Correct where any reference suffices may be Partial where all count.
                rows.setdefault((*asked, example.reference_mode), []).append(example)
    items = []
    for _, members in sorted(rows.items()):
        judged: dict[str, set[str]] = {CORRECT: set(), PARTIAL: set(), WRONG: set()}
        for row in members:
            if row.label in judged and 0 < len(row.response.strip()) <= MAX_WHOLE_CHARS:
                judged[row.label].add(row.response.strip())
        by_label = {label: tuple(sorted(responses)) for label, responses in judged.items()}
        items.append(Item(members[0], by_label))
    return items


def pool_of(items: Sequence[Item]) -> AnswerPool:
    """Pool the answers to all questions."""
    return AnswerPool.of((i.example.question, answer) for i in items for answer in i.references)


def generate_hard(
    examples: Sequence[LabelledExample],
    per_question: int,
    seed: int,
    kind_names: Sequence[str] = (),
    split: Split = "train",
) -> Iterator[LabelledExample]:
    """Yield hard responses to the questions of labelled rows.

    Each of ``per_question`` draws takes a frame and fills it with a right and with a wrong claim;
    for a set of answers often with a part of it too. A frame that claims nothing gives one Wrong
    row. What :func:`read_items` cannot use is passed over. Kinds are drawn from ``kind_names``, or
    from all; some have wordings for each split. Rows of a question depend on the question, the rows
    about it, the pool of answers and the seed alone.
    """
    items = read_items(examples)
    pool = pool_of(items)
    chosen = [kinds()[name] for name in kind_names or kinds()]
    for item in items:
        suited = [each for kind in chosen if (each := _Suited(kind, item, split)).has_frames]
        for number in range(per_question if suited else 0):
            rng = seeded_rng("hard", seed, item.example.question, item.references, number)
            for label, row in _Draw(rng, item, suited).rows(pool):
                name = f"hard-{seed}-{item.example.id}-{number}-{label.lower()}"
                yield row.model_copy(update={"id": name})


class _Suited:
    """A kind, and its frames that suit a question and a split, with a claim and without.

    Frames are kept by the line that they were composed from, so that a line of many alternatives is
    drawn as often as one of few.
    """

    def __init__(self, kind: Kind, item: Item, split: Split) -> None:
        self.kind = kind
        self.claiming: dict[str, list[Frame]] = {}
        self.empty: dict[str, list[Frame]] = {}
        for frame in kind.frames:
            if frame.split in ("every", split) and item.suits(frame):
                lines = self.claiming if frame.claims else self.empty
                lines.setdefault(frame.stem or frame.template, []).append(frame)
        self.has_frames = bool(self.claiming or self.empty)

    def draw(self, rng: Random) -> Frame:
        """Draw a frame."""
        empty = self.empty and rng.random() < self.kind.empty_share
        members = rng.choice(list((self.empty if empty else self.claiming).values()))
        return rng.choice(members) if len(members) > 1 else members[0]


class _Draw:
    """One frame to be filled for one question, once for each label that it can earn."""

    def __init__(self, rng: Random, item: Item, suited: Sequence[_Suited]) -> None:
        drawn = draw_weighted(rng, {each: each.kind.weight for each in suited})
        self.rng, self.item, self.kind = rng, item, drawn.kind
        self.frame = drawn.draw(rng)
        self.mode, self.variant = item.example.reference_mode, item.example.variant
        if len(item.references) == 1 and rng.random() < SINGLE_AS_SET_SHARE:
            self.mode = "all"
        if self.kind.name == "quantities":
            self.variant = rng.choice(("plain", "tolerance", self.variant))
            self.mode = self.mode if item.is_set else rng.choice(("all", "any"))
        # People judged whole responses in the mode of their row. Where all had one label, a whole
        # response would tell it.
        judged_both = bool(item.judged[CORRECT] and item.judged[WRONG])
        whole = self.kind.whole_claims and judged_both and self.mode == item.example.reference_mode
        self.whole = whole and rng.random() < WHOLE_SHARE

    def rows(self, pool: AnswerPool) -> Iterator[tuple[str, LabelledExample]]:
        """Yield a row for each label, without its id; none where no wrong answer can be found."""
        quantity = self.item.quantity if self.kind.name == "quantities" else None
        decoys = [] if quantity else self._draw_decoys(pool)
        if not (quantity or decoys):
            return
        template = self._with_surroundings()
        labels = [WRONG]
        if self.frame.claims:
            partial = self.item.is_set and self.rng.random() < PARTIAL_SHARE
            labels = [CORRECT, *([PARTIAL] if partial else []), WRONG]
        source = self.item.example
        tolerance = self.variant == "tolerance"
        for label in labels:
            slots = (
                quantity_slots(self.rng, quantity, label, tolerance=tolerance)
                if quantity
                else self._slots(label, *decoys)
            )
            yield (
                label,
                LabelledExample(
                    task=source.task,
                    variant=self.variant,
                    question=source.question,
                    references=source.references,
                    reference_mode=self.mode,
                    responses=(_broken_off(self.rng, template.format(**slots)),),
                    label=label,
                    metadata={
                        "kind": self.kind.name,
                        "claims": self.frame.claims,
                        "language": self.frame.language,
                    },
                    group=source.group,
                    source="hard",
                ),
            )

    def _draw_decoys(self, pool: AnswerPool) -> list[str]:
        """Draw two different wrong answers; none where the pool has too few."""
        decoys: list[str] = []
        for near in (self.kind.near, False):
            wrong = self._wrong_by_people(decoys)
            if wrong is None:
                answer = self.rng.choice(self.item.references)
                wrong = self.item.draw_wrong(self.rng, pool, answer, decoys, near=near)
            if wrong is None:
                return []
            decoys.append(wrong)
        return decoys

    def _wrong_by_people(self, taken: Sequence[str]) -> str | None:
        """Draw a short answer that people called wrong, if there is one; often pass it over."""
        short = [
            answer
            for response in self.item.judged[WRONG]
            if is_entity(answer := response.rstrip("."))
            and not may_mean(answer, (*self.item.references, *taken))
        ]
        return self.rng.choice(short) if short and self.rng.random() < PEOPLE_SHARE else None

    def _with_surroundings(self) -> str:
        """Put the frame, sometimes, between an opening and a closing that say nothing."""
        rng, template = self.rng, self.frame.template
        if self.frame.language != "en" or self.item.chinese:
            return template
        parts = words_of("hard")["parts"]
        opening = rng.choice(parts["openings"]) if rng.random() < AROUND_SHARE else ""
        closing = rng.choice(parts["closings"]) if rng.random() < AROUND_SHARE else ""
        closing = "" if "¦" in template else closing
        if closing and template[-1] not in '.!?")':
            closing = f".{closing}"
        return f"{opening}{template}{closing}"

    def _slots(self, label: str, wrong: str, other: str) -> dict[str, str]:
        claim = self._claim(label, wrong)
        if self.kind.written:
            claim = self._written(label, claim)
        rejected = self._claim(CORRECT, wrong) if label == WRONG else wrong
        if not self.frame.claims and self.rng.random() < 0.2:
            rejected = wrong
        whole = rejected_whole = ""
        if self.whole:
            whole = self._judged_response(label)
            rejected_whole = self._judged_response(CORRECT if label == WRONG else WRONG)
        return {
            "yes": whole or claim,
            "no": (rejected_whole if self.kind.name == "quoted" else "") or rejected,
            "other": other,
            "same": claim,
            "question": self.item.example.question,
        }

    def _written(self, label: str, claim: str) -> str:
        """Write a claim in the manner of the kind."""
        if self.kind.written == "misspelt":
            return misspell(self.rng, claim)
        # A wrong name may share its surname with the right one, and a right one with the question.
        taken = self.item.references if label == WRONG else (self.item.example.question,)
        forms = [form for form in name_forms(claim) if not may_name(form, taken)]
        return self.rng.choice(forms) if forms else claim

    def _judged_response(self, label: str) -> str:
        responses = self.item.judged[label]
        return self.rng.choice(responses) if responses else ""

    def _claim(self, label: str, wrong: str) -> str:
        """Write the short answer that earns a label: of a set all, a part, or all but one."""
        rng, references = self.rng, list(self.item.references)
        if not self.item.is_set:
            return rng.choice(references) if label == CORRECT else wrong
        if label == PARTIAL:
            kept = set(rng.sample(range(len(references)), rng.randint(1, len(references) - 1)))
            references = [text for number, text in enumerate(references) if number in kept]
        elif label == WRONG:
            references[rng.randrange(len(references))] = wrong
        comma = "、" if self.item.chinese else rng.choice((", ", "; ", " and "))
        return comma.join(references)


def _broken_off(rng: Random, response: str) -> str:
    """Break a response off somewhere after its ``¦``, often between two words."""
    head, _, tail = response.partition("¦")
    if not tail:
        return response
    end = rng.randrange(len(tail))
    if rng.random() < 0.6:
        end = tail.rfind(" ", 0, end + 1)
    return (head + tail[: max(end, 0)]).rstrip()
