"""Draw pairs of responses to questions about pictures; labels hold by construction.

If exactly one response is right, it wins. Otherwise a response that adds nothing to its answer wins
over one that does; equals tie (TruthfulJudge, section 5 and appendix F).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from data_prep.synthetic.charts.drawing import render
from data_prep.synthetic.charts.operations import operations_for
from data_prep.synthetic.charts.responses import (
    Exercise,
    draw_exercise,
    questions,
    questions_for,
    slots_of,
)
from data_prep.synthetic.charts.scenes import KINDS, ChartScene, draw_scene
from data_prep.synthetic.charts.styles import draw_style
from data_prep.synthetic.pictures import picture_path
from data_prep.synthetic.preference_pairs.critiques import (
    Evidence,
    confidence,
    pair_critique,
    preference,
    score_response,
    single_critique,
)
from data_prep.synthetic.preference_pairs.responses import (
    PairedResponse,
    right_response,
    with_addition,
    wrong_response,
)
from data_prep.synthetic.seeds import seeded_rng
from data_prep.synthetic.words import Wording, WordingSplit, read_wordings, wordings_of
from data_prep.truthfulness_tags import MADE_UP, MISREAD, MISREASONED, OFF_TOPIC, PADDED
from judging.types import LabelledExample

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
