"""Pairs of responses to questions about pictures, with critiques of what decides.

If exactly one response is right, it wins. Otherwise a response that adds nothing to its answer wins
over one that does. If that decides nothing, they tie (TruthfulJudge, section 5 and appendix F).
Labels, critiques, confidences and scores follow from what is known of the responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, Literal

from data_prep.made.charts.drawing import IMAGE_FOLDER, picture_path, render
from data_prep.made.charts.operations import Solution, operations_for
from data_prep.made.charts.responses import (
    Exercise,
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
    draw_weighted,
    join_list,
    read_wordings,
    seeded_rng,
    wordings_of,
    words_of,
)
from data_prep.sources.conversations import MADE_UP, MISREAD, MISREASONED, OFF_TOPIC, PADDED
from data_prep.splits.manifest import write_prepared
from data_prep.splits.splits import HeldOut, Splits, in_splits
from data_prep.tables.cells import save_image
from judging.tasks.hieval_qs import WRONG
from judging.tasks.truthful import TIE, A, B
from judging.types import LabelledExample, Split

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
ADDITIONS = {PADDED: "padding", MADE_UP: "guess"}
"""Tags of what may be added to an answer, with the family of wordings that says it."""
SHORT = ("selected", "inline")
"""Families of chart frames that state what they work with and no more."""
WORDED = (*SHORT, *SHORT, "bare", "label")
"""Families for right responses, and in the same shares for those with a misreading or faulty logic:
that an answer is bare must not tell a judge whether it is right."""
TRIES = 12
SCORES_FOLDER = "scores"

Evidence = Literal["reference", "description", "picture"]
"""The source that a judge can take the right answer from."""
_ADDED = {PADDED: "adds what nobody asked for", MADE_UP: "adds a guess"}
_SHOWN_FAULTS = {
    MISREAD: "misreads a value",
    MISREASONED: "reasons wrongly",
    OFF_TOPIC: "does not answer",
    MADE_UP: "makes things up",
}
_CONFIDENCE = {"truth": 0.95, "truth, padded": 0.88, "padding": 0.78, "tie": 0.6}
"""Confidence in the label, by what decides the pair."""
_PICTURE_DISCOUNT = 0.1
"""Loss of confidence where only a picture shows the right answer."""


@dataclass(frozen=True)
class PairedResponse:
    """A response with what is known of it."""

    text: str
    answers: tuple[str, ...]
    """Answers that it gives; empty if none."""
    right: bool
    fault: str | None
    """Tag of why the answer is wrong, if the response shows it."""
    wording_ids: tuple[str, ...]
    """Ids of the wordings that it is made of."""
    addition: str | None = None
    """Tag of what is added to the answer."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Name its faults as the paper does."""
        return tuple(tag for tag in (self.fault, self.addition) if tag)

    @property
    def score(self) -> int:
        """Score it from 0 to 10: below 5 if wrong, above if right, and less for an addition."""
        if self.right:
            return 7 if self.addition else 9
        if self.fault in (OFF_TOPIC, MADE_UP):
            return 1
        return 2 if self.addition else 3

    def described(self, evidence: Evidence) -> str:
        """Say why it is wrong, as far as a judge can see it, or what it adds.

        A reference alone does not show how a wrong answer came about.
        """
        added = f"{_ADDED[self.addition]}" if self.addition else ""
        if self.right:
            return added or "nothing else"
        hidden = evidence == "reference" and self.fault in (MISREAD, MISREASONED)
        fault = "is wrong" if self.fault is None or hidden else _SHOWN_FAULTS[self.fault]
        return f"{fault} and {added}" if added else fault


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
    """Stream pairs, of which the share ``pictures`` comes with a picture.

    For ``test``, the questions have held-out wordings, too.
    """
    for number in range(num_rows):
        rng = seeded_rng("pairs", seed, wordings, pictures, number)
        yield _draw_row(rng, f"pairs-{wordings}-{seed}-{number}", wordings, pictures)


def _draw_row(rng: Random, row_id: str, wordings: WordingSplit, pictures: float) -> PairRow:
    exercise, scene = _draw_exercise(rng)
    case = draw_weighted(rng, CASES)
    while (responses := _Responder(rng, exercise, wordings).both(case)) is None:
        exercise, scene = _draw_exercise(rng)
    with_picture = rng.random() < pictures
    evidence: Evidence = "reference"
    if rng.random() < ((1 - REFERENCE_SHARE) if with_picture else DESCRIBED_SHARE):
        evidence = "picture" if with_picture else "description"
    question = rng.choice(questions_for(exercise, wordings_of(questions(), wordings)))
    asked = full_question = question.template.format(**slots_of(exercise))
    if evidence == "description":
        described = read_wordings("preference_pairs", "descriptions", Wording)
        description = rng.choice(wordings_of(described, wordings))
        full_question = description.template.format(data=scene.describe(), question=asked)
    png = render(scene, draw_style(rng)) if with_picture else None
    stated = confidence(rng, responses, evidence)
    truth = exercise.references
    known: str = words_of("preference_pairs")["sources"][evidence].format(truth=join_list(truth))
    shared: dict[str, Any] = {
        "mode": "critique",
        "question": full_question,
        "references": truth if evidence == "reference" else (),
        "images": (picture_path(png),) if png else (),
        "group": row_id,
        "source": "pairs",
    }
    metadata = {
        "case": case,
        "evidence": evidence,
        "needs_picture": evidence == "picture",
        "kind": scene.kind,
        "operation": exercise.problem.operation,
        "question_form": question.id,
        "asked": asked,
        "readings": scene.readings(),
    }

    def pair(ending: str, both: Responses) -> LabelledExample:
        return LabelledExample(
            id=f"{row_id}{ending}",
            task="truthful-pair",
            responses=tuple(response.text for response in both),
            label=preference(*both),
            critique=f"{known} {_compared(both, evidence)}",
            confidence=stated,
            tags=tuple(dict.fromkeys(tag for response in both for tag in response.tags)),
            metadata={
                **metadata,
                "faults": [list(response.tags) for response in both],
                "forms": [list(response.wording_ids) for response in both],
            },
            **shared,
        )

    def single(ending: str, response: PairedResponse) -> LabelledExample:
        said = f" says {join_list(response.answers)} and" if response.answers else ""
        return LabelledExample(
            id=f"{row_id}{ending}",
            task="truthful-critique-score",
            responses=(response.text,),
            label=str(response.score),
            critique=f"{known} The response{said} {response.described(evidence)}.",
            tags=response.tags,
            metadata={**metadata, "forms": list(response.wording_ids)},
            **shared,
        )

    first, second = responses
    return PairRow(
        pair=pair("", (first, second)),
        swapped=pair("-swapped", (second, first)),
        singles=(single("-a", first), single("-b", second)),
        png=png,
    )


def _draw_exercise(rng: Random) -> tuple[Exercise, ChartScene]:
    kind = rng.choice(list(KINDS.values()))
    scene = draw_scene(rng, kind)
    return draw_exercise(rng, kind, scene, operations_for(kind.name)), scene


wordings = cache(partial(read_wordings, "preference_pairs", "responses", Wording))
"""Reads all wordings of what pairs say beyond the responses of the chart rows."""


class _Responder:
    """Source of responses to an exercise, whose truth and faults are known."""

    def __init__(self, rng: Random, exercise: Exercise, split: WordingSplit) -> None:
        self.rng, self.exercise, self.split = rng, exercise, split

    def both(self, case: str) -> Responses | None:
        """Draw two different responses of a case, in random order; ``None`` if there are none."""
        if case in ("one right", "one right, padded"):
            responses = [self.right(), self.wrong(FAULTS)]
        elif case.startswith("both right"):
            responses = [self.right(), self.right()]
        else:  # a response without an answer is not as wrong as one with a false answer
            answered = {name: FAULTS[name] for name in (MISREAD, MISREASONED)}
            responses = [self.wrong(answered), self.wrong(answered)]
        first, second = responses
        if first is None or second is None:
            return None
        if case.endswith("padded"):
            tag = draw_weighted(self.rng, PADDINGS)
            first = self.with_addition(first, tag)
            if case.endswith("both padded"):
                second = self.with_addition(second, tag)
        if first.text == second.text:
            return None
        return (first, second) if self.rng.random() < 0.5 else (second, first)

    def right(self) -> PairedResponse:
        """Draw a response with right readings and right logic."""
        text, ids, _ = self._worded(self.exercise.view, self.exercise.truth)
        return PairedResponse(text, self.exercise.truth.answers, True, None, ids)

    def wrong(self, faults: Mapping[str, float]) -> PairedResponse | None:
        """Draw a response with a fault; ``None`` if the exercise does not allow it.

        A misreading or faulty logic shows only if the response states more than its answer.
        """
        fault = draw_weighted(self.rng, faults)
        if fault == OFF_TOPIC:
            text, name = self._said("off_topic")
            return PairedResponse(text, (), False, fault, (name,))
        draft = self._misread() if fault == MISREAD else self._slip()
        if draft is None:
            return None
        believed, solution = draft
        answers = solution.answers
        if fault == MADE_UP:
            text, name = self._said("made_up", answer=join_list(answers))
            return PairedResponse(text, answers, False, fault, (name,))
        text, ids, family = self._worded(believed, solution)
        return PairedResponse(text, answers, False, fault if family in SHORT else None, ids)

    def with_addition(self, response: PairedResponse, tag: str) -> PairedResponse:
        """Add a sentence to a response that is not part of its answer."""
        stop = "" if response.text[-1] in ".!?" else "."
        added, name = self._said(ADDITIONS[tag])
        ids = (*response.wording_ids, name)
        return replace(
            response, text=f"{response.text}{stop} {added}", addition=tag, wording_ids=ids
        )

    def _worded(self, believed: View, solution: Solution) -> tuple[str, tuple[str, str], str]:
        """Word a solution; return the text, the ids of its wordings, and the frame's family."""
        wording = self.rng.choice(wordings_for(self.exercise, self.split, WORDED))
        text = put_into_words(self.exercise, wording, believed, solution)
        return text, (wording.frame.id, wording.step.id), wording.frame.family

    def _said(self, family: str, **slots: str) -> tuple[str, str]:
        """Fill a wording of a family; return the text and the wording's id."""
        worded = [w for w in wordings_of(wordings(), self.split) if w.family == family]
        wording = self.rng.choice(worded)
        return wording.template.format(**slots, **slots_of(self.exercise)), wording.id

    def _slip(self) -> tuple[View, Solution] | None:
        """Draw faulty logic on right readings, which shows without all readings stated."""
        view = self.exercise.view
        slips = [
            slip.solution
            for slip in self.exercise.problem.slips(view)
            if not slip.shows_all and self._is_wrong(slip.solution)
        ]
        return (view, self.rng.choice(slips)) if slips else None

    def _misread(self) -> tuple[View, Solution] | None:
        """Draw right logic on a misread value that the response states."""
        kind, view = self.exercise.kind, self.exercise.view
        for _ in range(TRIES):
            believed = dict(view)
            name = self.rng.choice(list(view))
            believed[name] += kind.unit * self.rng.choice((-3, -2, -1, 1, 2, 3))
            if not kind.allows(believed.values()):
                continue
            solution = self.exercise.problem.solve(believed)
            if solution is None or not self._is_wrong(solution):
                continue
            if states_misreading(self.exercise, believed, solution):
                return believed, solution
        return None

    def _is_wrong(self, solution: Solution) -> bool:
        return score_answers(solution.answers, self.exercise.truth.answers) == WRONG


def preference(first: PairedResponse, second: PairedResponse) -> str:
    """Label a pair: truth decides; between equals, the response that adds nothing."""
    a, b = ((response.right, response.addition is None) for response in (first, second))
    return TIE if a == b else A if a > b else B


def confidence(rng: Random, responses: Responses, evidence: Evidence) -> float:
    """Draw how clear the difference is, as a judge would state it without knowing the label."""
    first, second = responses
    if first.right != second.right:
        decided_by = "truth, padded" if first.addition or second.addition else "truth"
    else:
        decided_by = "padding" if preference(first, second) != TIE else "tie"
    discount = _PICTURE_DISCOUNT if evidence == "picture" else 0
    return round(_CONFIDENCE[decided_by] - discount + rng.uniform(-0.04, 0.04), 2)


def _compared(responses: Responses, evidence: Evidence) -> str:
    """Write in a few short sentences what decides between two responses."""
    first, second = (
        f"Response {name} "
        + (f"says {join_list(response.answers)}" if response.answers else "gives no answer")
        for name, response in zip((A, B), responses, strict=True)
    )
    label = preference(*responses)
    lost, won = responses if label == B else responses[::-1]
    if won.right != lost.right:
        padded = f", though it {won.described(evidence)}" if won.addition else ""
        fault = replace(lost, addition=None).described(evidence)
        loser = A if label == B else B
        decides = f"Response {label} is right{padded}; Response {loser} {fault}."
    else:
        decides = "Both are right" if won.right else "Both are wrong"
        if label == TIE:
            decides += " and alike."
        else:
            added = _ADDED[lost.addition or ""]
            decides += f", but Response {A if label == B else B} {added}."
    return f"{first}; {second}. {decides}"


def write_pairs(
    out: Path,
    splits: Mapping[Split, Sequence[PairRow]],
    *,
    both_orders: bool,
    source: Mapping[str, Any],
    held_out: HeldOut,
    seed: int,
    command: str,
) -> Splits:
    """Write pairs to ``out``, single responses to ``out/scores`` and pictures to ``out/images``.

    ``both_orders`` trains on every pair in both orders of its responses, and ``source`` says what
    the pairs were made from. Return the pairs of every split, as written.
    """
    pairs = {split: [row.pair for row in rows] for split, rows in splits.items()}
    if both_orders:
        pairs["train"] += [row.swapped for row in splits["train"]]
    for png in (row.png for rows in splits.values() for row in rows):
        if png:
            save_image(png, out / IMAGE_FOLDER)
    singles = {
        split: [
            # The file is one folder deeper.
            single.model_copy(update={"images": tuple(f"../{name}" for name in single.images)})
            for row in rows
            for single in row.singles
        ]
        for split, rows in splits.items()
    }
    written = in_splits(pairs, seed)
    for folder, examples, rows_are in (
        (out / SCORES_FOLDER, in_splits(singles, seed), "single"),
        (out, written, "pairs"),
    ):
        described = {**source, "rows_are": rows_are}
        write_prepared(
            folder, examples, source=described, held_out=held_out, seed=seed, command=command
        )
    return written
