"""One response of a pair: a worded answer whose truth and faults are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from data_prep.made.charts.drawing import picture_path, render, save_picture
from data_prep.made.charts.operations import Solution, operations_for
from data_prep.made.charts.responses import (
    Exercise,
    ResponseWording,
    draw_exercise,
    put_into_words,
    questions,
    questions_for,
    score_answers,
    slots_of,
    states_misreading,
    wordings_for,
)
from data_prep.made.charts.scenes import KINDS, ChartScene, View, draw_scene, draw_style
from data_prep.made.words.wordings import (
    Wording,
    WordingSplit,
    join_list,
    read_wordings,
    seeded_rng,
    wordings_of,
    words_of,
)
from data_prep.splits.manifest import write_prepared
from data_prep.splits.splits import HeldOut, Splits, fill_by_group, shuffled
from data_prep.truthfulness_tags import MADE_UP, MISREAD, MISREASONED, OFF_TOPIC, PADDED
from judging.tasks.hieval_qs import WRONG
from judging.tasks.truthful import TIE, A, B
from judging.types import LabelledExample, Split

ADDITIONS = {PADDED: "padding", MADE_UP: "guess"}
"""Tags of what may be added to an answer, and the family that words it."""
SHORT = ("selected", "inline")
"""Families of chart frames that state what they work with and no more."""
WORDED = (*SHORT, *SHORT, "bare", "label")
"""Families for right responses and, alike, for those with a misreading or faulty logic: a bare
answer must not tell a judge whether it is right."""
TRIES = 12


@dataclass(frozen=True)
class PairedResponse:
    """A response with what is true of it."""

    text: str
    answers: tuple[str, ...]
    """Answers that it gives; empty if none."""
    right: bool
    fault: str | None
    """Tag of why the answer is not right, where the response shows it."""
    wording_ids: tuple[str, ...]
    """Ids of the wordings that it is made of."""
    addition: str | None = None
    """Tag of what is added to the answer."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Return its faults under the paper's names."""
        return tuple(tag for tag in (self.fault, self.addition) if tag)


def right_response(rng: Random, exercise: Exercise, split: WordingSplit) -> PairedResponse:
    """Draw a response with right readings and right logic."""
    wording = rng.choice(wordings_for(exercise, split, WORDED))
    text = put_into_words(exercise, wording, exercise.view, exercise.truth)
    return PairedResponse(text, exercise.truth.answers, True, None, _ids(wording))


def wrong_response(
    rng: Random, exercise: Exercise, fault: str, split: WordingSplit
) -> PairedResponse | None:
    """Draw a response with a fault; ``None`` where the exercise does not lend itself to it.

    A misreading or faulty logic shows only where more than the answer is stated.
    """
    if fault == OFF_TOPIC:
        evasion = _draw_wording(rng, "off_topic", split)
        text = evasion.template.format(**slots_of(exercise))
        return PairedResponse(text, (), False, fault, (evasion.id,))
    draw = _misread if fault == MISREAD else _slip
    draft = draw(rng, exercise)
    if draft is None:
        return None
    believed, solution = draft
    answers = solution.answers
    if fault == MADE_UP:
        invention = _draw_wording(rng, "made_up", split)
        text = invention.template.format(answer=join_list(answers), **slots_of(exercise))
        return PairedResponse(text, answers, False, fault, (invention.id,))
    wording = rng.choice(wordings_for(exercise, split, WORDED))
    text = put_into_words(exercise, wording, believed, solution)
    visible_fault = fault if wording.frame.family in SHORT else None
    return PairedResponse(text, answers, False, visible_fault, _ids(wording))


def with_addition(
    rng: Random, response: PairedResponse, tag: str, exercise: Exercise, split: WordingSplit
) -> PairedResponse:
    """Add a sentence that is beside the answer to a response."""
    wording = _draw_wording(rng, ADDITIONS[tag], split)
    stop = "" if response.text[-1] in ".!?" else "."
    text = f"{response.text}{stop} {wording.template.format(**slots_of(exercise))}"
    ids = (*response.wording_ids, wording.id)
    return replace(response, text=text, addition=tag, wording_ids=ids)


def _ids(wording: ResponseWording) -> tuple[str, str]:
    return wording.frame.id, wording.step.id


@cache
def wordings() -> tuple[Wording, ...]:
    """Return all wordings of what pairs say beyond the responses of the chart rows."""
    return read_wordings("preference_pairs", "responses", Wording)


def _draw_wording(rng: Random, family: str, split: WordingSplit) -> Wording:
    return rng.choice([w for w in wordings_of(wordings(), split) if w.family == family])


def _slip(rng: Random, exercise: Exercise) -> tuple[View, Solution] | None:
    """Draw faulty logic on right readings that shows without the other readings."""
    slips = [
        slip.solution
        for slip in exercise.problem.slips(exercise.view)
        if not slip.shows_all and _is_wrong(slip.solution, exercise)
    ]
    return (exercise.view, rng.choice(slips)) if slips else None


def _misread(rng: Random, exercise: Exercise) -> tuple[View, Solution] | None:
    """Draw right logic on a value that is misread and that the response states."""
    kind, view = exercise.kind, exercise.view
    for _ in range(TRIES):
        believed = dict(view)
        believed[rng.choice(list(view))] += kind.unit * rng.choice((-3, -2, -1, 1, 2, 3))
        if not kind.allows(believed.values()):
            continue
        solution = exercise.problem.solve(believed)
        if solution is None or not _is_wrong(solution, exercise):
            continue
        if states_misreading(exercise, believed, solution):
            return believed, solution
    return None


def _is_wrong(solution: Solution, exercise: Exercise) -> bool:
    return score_answers(solution.answers, exercise.truth.answers) == WRONG


Evidence = Literal["reference", "description", "picture"]
"""The source that a judge can take the right answer from."""

_ADDITIONS = {PADDED: "adds what nobody asked for", MADE_UP: "adds a guess"}
_FAULTS = {
    MISREAD: "misreads a value",
    MISREASONED: "reasons wrongly",
    OFF_TOPIC: "does not answer",
    MADE_UP: "makes things up",
}
_CONFIDENCE = {"truth": 0.95, "truth, padded": 0.88, "padding": 0.78, "tie": 0.6}
"""Confidence by what decides the pair."""
_PICTURE_DISCOUNT = 0.1
"""Loss of confidence where only a picture shows the right answer."""


def preference(first: PairedResponse, second: PairedResponse) -> str:
    """Return the label of a pair: truth decides; between equals, the response that adds nothing."""
    a, b = ((response.right, response.addition is None) for response in (first, second))
    return TIE if a == b else A if a > b else B


def pair_critique(
    responses: Sequence[PairedResponse], truth: Sequence[str], evidence: Evidence
) -> str:
    """Write in a few short sentences what decides between two responses."""
    first, second = (
        f"Response {name} "
        + (f"says {join_list(response.answers)}" if response.answers else "gives no answer")
        for name, response in zip((A, B), responses, strict=True)
    )
    source = _source(truth, evidence)
    return f"{source} {first}; {second}. {_conclusion(responses, evidence)}"


def single_critique(response: PairedResponse, truth: Sequence[str], evidence: Evidence) -> str:
    """Write in a short sentence what decides about one response."""
    source = _source(truth, evidence)
    answers = join_list(response.answers)
    subject = f"The response says {answers}" if answers else "The response"
    if response.right:
        addition = _addition(response) if response.addition else "nothing else"
        return f"{source} {subject} and {addition}."
    fault = _fault(response, evidence)
    addition = f" and {_addition(response)}" if response.addition else ""
    return f"{source} {subject}{' and' if answers else ''} {fault}{addition}."


def score_response(response: PairedResponse) -> int:
    """Score a response from 0 to 10: false below 5, true above; an addition costs something."""
    if response.right:
        return 7 if response.addition else 9
    if response.fault in (OFF_TOPIC, MADE_UP):
        return 1
    return 2 if response.addition else 3


def confidence(rng: Random, responses: Sequence[PairedResponse], evidence: Evidence) -> float:
    """Draw how clear the difference is, as a judge would state it without knowing the label."""
    first, second = responses
    if first.right != second.right:
        decided_by = "truth, padded" if first.addition or second.addition else "truth"
    else:
        decided_by = "padding" if preference(first, second) != TIE else "tie"
    discount = _PICTURE_DISCOUNT if evidence == "picture" else 0
    return round(_CONFIDENCE[decided_by] - discount + rng.uniform(-0.04, 0.04), 2)


def _source(truth: Sequence[str], evidence: Evidence) -> str:
    """State the right answer by the evidence for it."""
    sources: dict[str, str] = words_of("preference_pairs")["sources"]
    return sources[evidence].format(truth=join_list(truth))


def _conclusion(responses: Sequence[PairedResponse], evidence: Evidence) -> str:
    first, second = responses
    if first.right != second.right:
        won, lost = (0, 1) if first.right else (1, 0)
        winner = responses[won]
        padded = f", though it {_addition(winner)}" if winner.addition else ""
        right = f"Response {(A, B)[won]} is right{padded}"
        return f"{right}; Response {(A, B)[lost]} {_fault(responses[lost], evidence)}."
    both = "Both are right" if first.right else "Both are wrong"
    if preference(first, second) == TIE:
        return f"{both} and alike."
    lost = 0 if first.addition else 1
    return f"{both}, but Response {(A, B)[lost]} {_addition(responses[lost])}."


def _addition(response: PairedResponse) -> str:
    assert response.addition
    return _ADDITIONS[response.addition]


def _fault(response: PairedResponse, evidence: Evidence) -> str:
    """Say why a response is wrong, as far as a judge can see it.

    A reference alone does not show how a wrong answer came about.
    """
    fault = response.fault
    if fault is None or (evidence == "reference" and fault in (MISREAD, MISREASONED)):
        return "is wrong"
    return _FAULTS[fault]


CASES = {
    "one right": 0.52,
    "one right, padded": 0.08,
    "both right, one padded": 0.17,
    "both wrong, one padded": 0.05,
    "both right": 0.09,
    "both right, both padded": 0.03,
    "both wrong": 0.06,
}
"""Share of pairs; the last three tie."""
FAULTS = {MISREAD: 0.35, MISREASONED: 0.25, OFF_TOPIC: 0.2, MADE_UP: 0.2}
"""Shares of the faults of wrong responses; some exercises do not allow some faults."""
PADDINGS = {PADDED: 0.6, MADE_UP: 0.4}
DESCRIBED_SHARE = 0.1
"""Share of the pairs without a picture that have the data in the question and no reference."""
REFERENCE_SHARE = 0.5
"""Share of the pairs with a picture that have a reference answer and so do not need the picture."""
PICTURE_SHARE = 0.1

Responses = tuple[PairedResponse, PairedResponse]


@dataclass(frozen=True)
class PairRow:
    """A pair with its critique, its responses one by one, and its picture where it has one.

    Image paths are ``images/<hash>.png``.
    """

    pair: LabelledExample
    """Task ``truthful-pair``."""
    swapped: LabelledExample
    """The same pair with its responses the other way round."""
    singles: tuple[LabelledExample, LabelledExample]
    """Task ``truthful-critique-score``."""
    png: bytes | None


def generate_pairs(
    num_rows: int, seed: int, wordings: WordingSplit, pictures: float = PICTURE_SHARE
) -> Iterator[PairRow]:
    """Stream pairs. Row ``i`` depends on ``seed``, ``wordings``, ``pictures`` and ``i`` alone.

    Args:
        num_rows: How many pairs to draw.
        seed: Any integer.
        wordings: Wordings of questions and responses. Questions of ``test``, too, are worded in
            held-out wordings only.
        pictures: Share of pairs that come with a picture, from 0 to 1.
    """
    for number in range(num_rows):
        rng = seeded_rng("pairs", seed, wordings, pictures, number)
        yield _draw_row(rng, f"pairs-{wordings}-{seed}-{number}", wordings, pictures)


def _draw_row(rng: Random, row_id: str, wordings: WordingSplit, pictures: float) -> PairRow:
    exercise, scene = _draw_exercise(rng)
    case = _draw_weighted(rng, CASES)
    responses = _draw_responses(rng, exercise, case, wordings)
    while responses is None:
        exercise, scene = _draw_exercise(rng)
        responses = _draw_responses(rng, exercise, case, wordings)
    evidence, with_picture = _draw_evidence(rng, pictures)
    question = rng.choice(questions_for(exercise, wordings_of(questions(), wordings)))
    question_text = question.template.format(**slots_of(exercise))
    full_question = question_text
    if evidence == "description":
        described = read_wordings("preference_pairs", "descriptions", Wording)
        description = rng.choice(wordings_of(described, wordings))
        full_question = description.template.format(data=scene.describe(), question=question_text)
    png = render(scene, draw_style(rng)) if with_picture else None
    facts = _PairFacts(
        row_id=row_id,
        question=full_question,
        truth=exercise.references,
        evidence=evidence,
        images=(picture_path(png),) if png else (),
        confidence=confidence(rng, responses, evidence),
        metadata={
            "case": case,
            "evidence": evidence,
            "needs_picture": evidence == "picture",
            "kind": scene.kind,
            "operation": exercise.problem.operation,
            "question_form": question.id,
            "asked": question_text,
            "readings": scene.readings(),
        },
    )
    first, second = responses
    return PairRow(
        pair=facts.pair(row_id, (first, second)),
        swapped=facts.pair(f"{row_id}-swapped", (second, first)),
        singles=(facts.single(f"{row_id}-a", first), facts.single(f"{row_id}-b", second)),
        png=png,
    )


def _draw_exercise(rng: Random) -> tuple[Exercise, ChartScene]:
    kind = rng.choice(list(KINDS.values()))
    scene = draw_scene(rng, kind)
    return draw_exercise(rng, kind, scene, operations_for(kind.name)), scene


def _draw_responses(
    rng: Random, exercise: Exercise, case: str, wordings: WordingSplit
) -> Responses | None:
    """Draw two different responses of a case, in random order; ``None`` if there are none."""

    def right() -> PairedResponse:
        return right_response(rng, exercise, wordings)

    def wrong(*faults: str) -> PairedResponse | None:
        fault = _draw_weighted(rng, {name: FAULTS[name] for name in faults})
        return wrong_response(rng, exercise, fault, wordings)

    if case in ("one right", "one right, padded"):
        responses = [right(), wrong(*FAULTS)]
    elif case.startswith("both right"):
        responses = [right(), right()]
    else:  # a response without an answer is not as wrong as one with a false answer
        responses = [wrong(MISREAD, MISREASONED), wrong(MISREAD, MISREASONED)]
    if None in responses:
        return None
    first, second = (response for response in responses if response)
    if case.endswith("padded"):
        tag = _draw_weighted(rng, PADDINGS)
        first = with_addition(rng, first, tag, exercise, wordings)
        if case.endswith("both padded"):
            second = with_addition(rng, second, tag, exercise, wordings)
    if first.text == second.text:
        return None
    return (first, second) if rng.random() < 0.5 else (second, first)


def _draw_evidence(rng: Random, pictures: float) -> tuple[Evidence, bool]:
    """Draw what shows the right answer, and whether the pair comes with a picture."""
    with_picture = rng.random() < pictures
    if rng.random() < ((1 - REFERENCE_SHARE) if with_picture else DESCRIBED_SHARE):
        return ("picture" if with_picture else "description"), with_picture
    return "reference", with_picture


@dataclass(frozen=True)
class _PairFacts:
    """Everything that the examples of one pair share."""

    row_id: str
    question: str
    truth: tuple[str, ...]
    evidence: Evidence
    images: tuple[str, ...]
    confidence: float
    metadata: dict[str, Any]

    def pair(self, example_id: str, responses: Responses) -> LabelledExample:
        """Make the example of the pair with its responses in this order."""
        return LabelledExample(
            id=example_id,
            task="truthful-pair",
            responses=tuple(response.text for response in responses),
            label=preference(*responses),
            critique=pair_critique(responses, self.truth, self.evidence),
            confidence=self.confidence,
            tags=tuple(dict.fromkeys(tag for response in responses for tag in response.tags)),
            metadata={
                **self.metadata,
                "faults": [list(response.tags) for response in responses],
                "forms": [list(response.wording_ids) for response in responses],
            },
            **self._shared_fields(),
        )

    def single(self, example_id: str, response: PairedResponse) -> LabelledExample:
        """Make the example of one response of the pair."""
        return LabelledExample(
            id=example_id,
            task="truthful-critique-score",
            responses=(response.text,),
            label=str(score_response(response)),
            critique=single_critique(response, self.truth, self.evidence),
            tags=response.tags,
            metadata={**self.metadata, "forms": list(response.wording_ids)},
            **self._shared_fields(),
        )

    def _shared_fields(self) -> dict[str, Any]:
        return {
            "mode": "critique",
            "question": self.question,
            "references": self.truth if self.evidence == "reference" else (),
            "images": self.images,
            "group": self.row_id,
            "source": "pairs",
        }


def _draw_weighted(rng: Random, shares: dict[str, float]) -> str:
    return rng.choices(list(shares), list(shares.values()))[0]


SCORES_FOLDER = "scores"

PairSplits = dict[Split, list[PairRow]]


def split_pairs(
    rows: Sequence[PairRow], test: Sequence[PairRow], held_out: HeldOut, seed: int
) -> PairSplits:
    """Deal pairs to train, val and cal beside a test split that has wordings of its own.

    Pairs with the same question go to the same split, so val and cal may become a little larger
    than ``held_out`` says. No two pairs share a picture.
    """
    sizes = held_out.targets(len(rows) + len(test))
    splits = fill_by_group(rows, lambda row: row.pair.metadata["asked"], sizes, seed)
    return {**splits, "test": list(test)}


def write_pairs(
    out: Path,
    splits: PairSplits,
    *,
    both_orders: bool,
    source: Mapping[str, Any],
    held_out: HeldOut,
    seed: int,
    command: str,
) -> Splits:
    """Write pairs to ``out``, single responses to ``out/scores`` and pictures to ``out/images``.

    Args:
        out: Folder to write to; made if it is missing.
        splits: Result of :func:`split_pairs`.
        both_orders: Train on every pair in both orders of its responses.
        source: What the pairs were made from.
        held_out: Sizes that were asked for.
        seed: Seed of the split.
        command: Command line that can repeat this.

    Returns:
        The pairs of every split, as written.
    """
    pairs: Splits = {}
    singles: Splits = {}
    for split, rows in splits.items():
        for row in rows:
            if row.png:
                save_picture(row.png, out)
        swapped = [row.swapped for row in rows] if both_orders and split == "train" else []
        pairs[split] = _in_split([*(row.pair for row in rows), *swapped], split, seed)
        responses = (_in_subfolder(single) for row in rows for single in row.singles)
        singles[split] = _in_split(responses, split, seed)
    shared: dict[str, Any] = {"held_out": held_out, "seed": seed, "command": command}
    write_prepared(out / SCORES_FOLDER, singles, source={**source, "rows_are": "single"}, **shared)
    write_prepared(out, pairs, source={**source, "rows_are": "pairs"}, **shared)
    return pairs


def _in_split(
    examples: Iterable[LabelledExample], split: Split, seed: int
) -> list[LabelledExample]:
    return shuffled((row.model_copy(update={"split": split}) for row in examples), seed)


def _in_subfolder(example: LabelledExample) -> LabelledExample:
    """Return an example whose picture is named from a folder beside that of the pictures."""
    images = tuple(f"../{name}" for name in example.images)
    return example.model_copy(update={"images": images}) if images else example
