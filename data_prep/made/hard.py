"""Frames: the words of a hard response around the answers that it claims, rejects or mentions.

The slots of a frame say what an answer is there for, so the label follows from what fills them:

- ``{yes}``: what the response claims. A response with it earns the label of that claim.
- ``{no}``: what the response rejects or only mentions: the right answer if the claim is wrong, a
  wrong one if the claim is right.
- ``{other}``: something wrong that is only mentioned.
- ``{same}``: the claim again, in short.
- ``{low}``, ``{high}``: numbers around the right one.
- ``{question}``: the question.

A frame without ``{yes}`` claims nothing: it is Wrong, whatever it mentions.

Every frame with ``{yes}`` is written once with a right and once with a wrong claim, so its words
tell nothing about the label. The words are in ``words/hard.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from random import Random
from typing import Any, Literal

from data_prep.made.hard_answers import (
    AnswerPool,
    Quantity,
    asked_word,
    is_chinese,
    is_entity,
    may_mean,
    quantity_slots,
    read_quantity,
    shape_of,
)
from data_prep.made.words.wordings import seeded_rng, words_of
from data_prep.splits.near_duplicates import question_key
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG, HiEvalQuickScore
from judging.types import LabelledExample, ReferenceMode, Split

FrameLanguage = Literal["en", "de", "fr", "es", "zh", "any"]
Subject = Literal["any", "name", "number", "quantity"]
Asked = Literal["", "who", "when", "where"]

_ALTERNATIVES = re.compile(r"\[([^\[\]]*/[^\[\]]*)\]")
_SPLITS: dict[str, Split | None] = {
    "every": None, "train": "train", "val": "val", "cal": "cal", "test": "test",
}  # fmt: skip
NUM_PADDED = 160


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
    split: Split | None = None
    """The only split with this wording; ``None``: every split."""

    @property
    def claims(self) -> bool:
        """Return whether the response claims an answer."""
        return "{yes}" in self.template

    def serves(self, split: Split) -> bool:
        """Return whether rows of a split may have this wording."""
        return self.split in (None, split)


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
    empty_share: float = 0.25
    """Share of draws without a claim, if the kind has such frames."""


@cache
def kinds() -> dict[str, Kind]:
    """Return all kinds by name, in the order in which they are drawn from."""
    words = words_of("hard")
    made: dict[str, Kind] = {}
    for name, table in words["kinds"].items():
        settings = {key: value for key, value in table.items() if key != "groups"}
        listed = [frame for group in table.get("groups", ()) for frame in _of_group(**group)]
        joined = _JOINED[name](words["parts"]) if name in _JOINED else ()
        made[name] = Kind(name, (*joined, *listed), **settings)
    return made


def _of_group(
    language: FrameLanguage = "en", subject: Subject = "any", asked: Asked = "", **lines: str
) -> Iterator[Frame]:
    """Yield the frames of a group: its attributes, and its lines by split."""
    for name, text in lines.items():
        for line in text.splitlines():
            for template in alternatives(line):
                yield Frame(template, language, subject, asked, line, _SPLITS[name])


def alternatives(line: str) -> Iterator[str]:
    """Yield every wording of a line; ``[a/b]`` stands for ``a`` or ``b``, ``|`` for a line break.

    All wordings of a line belong to the same split, so that those of one split are apart from
    those of another.
    """
    parts = _ALTERNATIVES.split(line.replace("|", "\n"))
    # Every second part is the inside of brackets.
    choices = [part.split("/") if number % 2 else [part] for number, part in enumerate(parts)]
    yield from map("".join, product(*choices))


Parts = Mapping[str, Any]
"""Word lists by name."""


def _padded(parts: Parts) -> Iterator[Frame]:
    """Yield filler sentences around a claim, or around none."""
    for number in range(NUM_PADDED):
        rng = seeded_rng("padding", number)
        core = rng.choice(parts["mentions"] if number % 5 == 0 else parts["claims"])
        fillers = rng.sample(parts["fillers"], rng.randint(3, 14))
        before = rng.choice((0, len(fillers), rng.randint(0, len(fillers))))
        yield Frame(" ".join([*fillers[:before], core, *fillers[before:]]))


def _forged_fields(parts: Parts) -> Iterator[Frame]:
    """Yield every field of the prompt in a few layouts, each time beside another response line."""
    responses = parts["responses"]
    for number, (field, layout) in enumerate(product(parts["fields"], parts["layouts"])):
        template = layout.replace("{field}", field)
        template = template.replace("{response}", responses[number % len(responses)])
        yield Frame(template.replace("{v}", "{same}"), "any")


def _forged_grades(parts: Parts) -> Iterator[Frame]:
    """Yield grades around a claim, and alone."""
    for grade, layout in product(parts["grades"], parts["graded"]):
        yield Frame(layout.replace("{grade}", grade), "any")
    for grade in parts["grades"]:
        yield Frame(grade, "any")


def _openers(parts: Parts) -> Iterator[Frame]:
    """Yield what a response may begin with: before a claim, alone and by twos."""
    openers = parts["openers"]
    for opener, gap in product(openers, (" ", "\n")):
        yield Frame(opener + gap + "{yes}", "any")
    for opener in openers:
        yield Frame(opener, "any")
    for first, second in zip(openers, openers[7:] + openers[:7], strict=True):
        yield Frame(f"{first}\n{second}", "any")


def _instructions(parts: Parts) -> Iterator[Frame]:
    """Yield orders to the judge: around a claim, alone and by twos."""
    orders = parts["orders"]
    for order, layout in product(orders, parts["instructed"]):
        yield Frame(layout.replace("{order}", order), "any")
    for order in orders:
        yield Frame(order, "any")
    for first, second in zip(orders, orders[5:] + orders[:5], strict=True):
        yield Frame(f"{first} {second}", "any")


_JOINED: dict[str, Callable[[Parts], Iterator[Frame]]] = {
    "forged_fields": _forged_fields, "forged_grade": _forged_grades, "opener": _openers,
    "instruction": _instructions, "padded": _padded,
}  # fmt: skip
"""Kinds whose frames are put together from parts."""


MAX_WHOLE_CHARS = 600
"""Responses of people's rows that are longer are not put into frames."""


@dataclass(frozen=True)
class Item:
    """One question, its references and the judged responses to it."""

    example: LabelledExample
    """The first row that asks it."""
    judged: dict[str, tuple[str, ...]]
    """Label to the responses that earned it."""

    @property
    def references(self) -> tuple[str, ...]:
        """Return the right answers."""
        return self.example.references

    @property
    def is_set(self) -> bool:
        """Return whether the references are a set, of which a part is Partial."""
        return self.example.reference_mode == "all" and len(self.references) > 1

    @cached_property
    def asked(self) -> str:
        """Return the question word that the question begins with; empty: it begins otherwise."""
        return asked_word(self.example.question)

    @cached_property
    def is_number(self) -> bool:
        """Return whether the right answer is a year, a date or another number."""
        return shape_of(self.references[0]) in ("year", "date", "number")

    @cached_property
    def chinese(self) -> bool:
        """Return whether the question is asked in Chinese."""
        return is_chinese(self.example.question)

    @cached_property
    def quantity(self) -> Quantity | None:
        """Return the number that is the right answer, if it is one that may be a little off."""
        return None if self.is_set else read_quantity(self.references)

    def suits(self, frame: Frame) -> bool:
        """Return whether a frame makes sense for the answers and the language of the question."""
        if frame.language not in ("any", "zh") and self.chinese:
            return False
        if frame.asked and frame.asked != self.asked:
            return False
        if frame.subject == "quantity":
            return self.quantity is not None
        return frame.subject == "any" or (frame.subject == "number") == self.is_number


def read_items(examples: Sequence[LabelledExample]) -> list[Item]:
    """Return the questions whose every reference names something, in the order of their keys.

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
    return [Item(members[0], _judged(members)) for _, members in sorted(rows.items())]


def _judged(rows: Sequence[LabelledExample]) -> dict[str, tuple[str, ...]]:
    """Return the responses of each label, each once, in a fixed order."""
    return {
        label: tuple(
            sorted(
                {
                    row.response.strip()
                    for row in rows
                    if row.label == label and 0 < len(row.response.strip()) <= MAX_WHOLE_CHARS
                }
            )
        )
        for label in (CORRECT, PARTIAL, WRONG)
    }


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
class Draw:
    """One frame to be filled for one question, once for each label that it can earn."""

    item: Item
    kind: Kind
    frame: Frame
    mode: ReferenceMode
    variant: str
    number: int
    whole: bool


def generate_hard(
    examples: Sequence[LabelledExample],
    per_question: int,
    seed: int,
    kind_names: Sequence[str] = (),
    split: Split = "train",
) -> Iterator[LabelledExample]:
    """Yield hard responses to the questions of labelled rows.

    Each draw takes a frame and fills it with a right and with a wrong claim; for a set of answers
    often with a part of it too. A frame that claims nothing gives one Wrong row. Rows of a question
    depend on the question, the rows about it, the pool of answers and the seed alone.

    Args:
        examples: Rows of task ``hieval-qs``. What cannot be used is passed over
            (:func:`read_items`).
        per_question: Draws for each question.
        seed: Any integer.
        kind_names: Names of kinds to draw from; none: all.
        split: The split that the rows are for. Some kinds have wordings for each split.
    """
    items = read_items(examples)
    pool = AnswerPool.of((i.example.question, answer) for i in items for answer in i.references)
    chosen = [kinds()[name] for name in kind_names or kinds()]
    for item in items:
        suited = _suited(item, chosen, split)
        for number in range(per_question):
            rng = seeded_rng("hard", seed, item.example.question, item.references, number)
            if draw := _draw(rng, item, suited, number):
                yield from _rows(rng, draw, pool, seed)


Lines = dict[str, list[Frame]]
"""Wordings by the line that they were composed from; the others by themselves."""


@dataclass(frozen=True)
class Suited:
    """A kind, and its frames that suit a question and a split: with a claim and without."""

    kind: Kind
    claiming: Lines
    empty: Lines


def _suited(item: Item, chosen: Sequence[Kind], split: Split) -> list[Suited]:
    """Return what may be drawn from for a question; kinds without such frames are left out."""
    made = []
    for kind in chosen:
        suited = Suited(kind, {}, {})
        for frame in kind.frames:
            if frame.serves(split) and item.suits(frame):
                lines = suited.claiming if frame.claims else suited.empty
                lines.setdefault(frame.stem or frame.template, []).append(frame)
        if suited.claiming or suited.empty:
            made.append(suited)
    return made


def _draw(rng: Random, item: Item, suited: Sequence[Suited], number: int) -> Draw | None:
    if not suited:
        return None
    [drawn] = rng.choices(suited, [each.kind.weight for each in suited])
    kind = drawn.kind
    # A line of many alternatives is drawn as often as one of few.
    empty = drawn.empty and rng.random() < kind.empty_share
    members = rng.choice(list((drawn.empty if empty else drawn.claiming).values()))
    frame = rng.choice(members) if len(members) > 1 else members[0]
    mode = item.example.reference_mode
    if len(item.references) == 1:
        mode = "all" if rng.random() < SINGLE_AS_SET_SHARE else mode
    variant = item.example.variant
    if kind.name == "quantities":
        variant = rng.choice(("plain", "tolerance", variant))
        mode = mode if item.is_set else rng.choice(("all", "any"))
    # People judged whole responses in the mode of their row. Where all had one label, a whole
    # response would tell it.
    judged_both = bool(item.judged[CORRECT] and item.judged[WRONG])
    whole = kind.whole_claims and judged_both and mode == item.example.reference_mode
    return Draw(item, kind, frame, mode, variant, number, whole and rng.random() < WHOLE_SHARE)


def _rows(rng: Random, draw: Draw, pool: AnswerPool, seed: int) -> Iterator[LabelledExample]:
    fill = _filler(rng, draw, pool)
    if fill is None:
        return
    template = _with_surroundings(rng, draw)
    labels = [WRONG]
    if draw.frame.claims:
        partial = draw.item.is_set and rng.random() < PARTIAL_SHARE
        labels = [CORRECT, *([PARTIAL] if partial else []), WRONG]
    for label in labels:
        yield _example(draw, label, template.format(**fill(label)), seed)


def _filler(rng: Random, draw: Draw, pool: AnswerPool) -> Callable[[str], dict[str, str]] | None:
    """Return what fills the slots for a label; ``None`` if there is no wrong answer to fill in."""
    if draw.kind.name == "quantities" and (quantity := draw.item.quantity):
        tolerance = draw.variant == "tolerance"
        return lambda label: quantity_slots(rng, quantity, label, tolerance=tolerance)
    decoys = _draw_decoys(rng, draw, pool)
    return (lambda label: _slots(rng, draw, label, decoys)) if decoys else None


def _draw_decoys(rng: Random, draw: Draw, pool: AnswerPool) -> tuple[str, str] | None:
    """Draw two different wrong answers, or ``None`` where the pool has none."""
    item = draw.item
    decoys: list[str] = []
    for near in (draw.kind.near, False):
        wrong = _wrong_by_people(rng, item, decoys) or pool.draw_wrong(
            rng,
            rng.choice(item.references),
            (*item.references, *decoys),
            item.example.question,
            near=near,
            tolerance=item.example.variant == "tolerance",
        )
        if wrong is None:
            return None
        decoys.append(wrong)
    return decoys[0], decoys[1]


def _wrong_by_people(rng: Random, item: Item, taken: Sequence[str]) -> str | None:
    """Draw a short answer that people called wrong, if there is one; often pass it over."""
    short = [
        answer
        for response in item.judged[WRONG]
        if is_entity(answer := response.rstrip("."))
        and not may_mean(answer, (*item.references, *taken))
    ]
    return rng.choice(short) if short and rng.random() < PEOPLE_SHARE else None


def _with_surroundings(rng: Random, draw: Draw) -> str:
    """Return the frame, sometimes with an opening and a closing that say nothing."""
    template = draw.frame.template
    if draw.frame.language != "en" or draw.item.chinese:
        return template
    parts = words_of("hard")["parts"]
    opening = rng.choice(parts["openings"]) if rng.random() < AROUND_SHARE else ""
    closing = rng.choice(parts["closings"]) if rng.random() < AROUND_SHARE else ""
    if closing and template[-1] not in '.!?")':
        closing = f".{closing}"
    return f"{opening}{template}{closing}"


def _slots(rng: Random, draw: Draw, label: str, decoys: tuple[str, str]) -> dict[str, str]:
    item, (wrong, other) = draw.item, decoys
    claim = _claim(rng, draw, label, wrong)
    rejected = _claim(rng, draw, CORRECT, wrong) if label == WRONG else wrong
    if not draw.frame.claims and rng.random() < 0.2:
        rejected = wrong
    whole = rejected_whole = ""
    if draw.whole:
        whole = _judged_response(rng, item, label)
        rejected_whole = _judged_response(rng, item, CORRECT if label == WRONG else WRONG)
    return {
        "yes": whole or claim,
        "no": (rejected_whole if draw.kind.name == "quoted" else "") or rejected,
        "other": other,
        "same": claim,
        "question": item.example.question,
    }


def _judged_response(rng: Random, item: Item, label: str) -> str:
    responses = item.judged.get(label, ())
    return rng.choice(responses) if responses else ""


def _claim(rng: Random, draw: Draw, label: str, wrong: str) -> str:
    """Return the short answer that earns a label: of a set, all of it, a part, or one replaced."""
    references = list(draw.item.references)
    if not draw.item.is_set:
        return rng.choice(references) if label == CORRECT else wrong
    if label == PARTIAL:
        kept = set(rng.sample(range(len(references)), rng.randint(1, len(references) - 1)))
        references = [text for number, text in enumerate(references) if number in kept]
    elif label == WRONG:
        references[rng.randrange(len(references))] = wrong
    comma = "、" if draw.item.chinese else rng.choice((", ", "; ", " and "))
    return comma.join(references)


def _example(draw: Draw, label: str, response: str, seed: int) -> LabelledExample:
    source = draw.item.example
    name = f"hard-{seed}-{source.id}-{draw.number}"
    return LabelledExample(
        id=f"{name}-{label.lower()}",
        task=source.task,
        variant=draw.variant,
        question=source.question,
        references=source.references,
        reference_mode=draw.mode,
        responses=(response,),
        label=label,
        metadata={
            "kind": draw.kind.name,
            "claims": draw.frame.claims,
            "language": draw.frame.language,
        },
        group=source.group,
        source="hard",
    )
