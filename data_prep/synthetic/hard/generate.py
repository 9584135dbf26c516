"""Draw hard responses to labelled questions, whose labels hold by construction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.hard.answers import AnswerPool, is_entity, may_mean
from data_prep.synthetic.hard.frames import Frame, Kind, kinds
from data_prep.synthetic.hard.items import Item, read_items
from data_prep.synthetic.hard.quantities import quantity_slots
from data_prep.synthetic.seeds import seeded_rng
from data_prep.synthetic.words import words_of
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG
from judging.types import LabelledExample, ReferenceMode, Split

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
