"""Pairs of responses for people to compare: every response meets several others of its question.

TruthfulJudge compares each response with several others, in three match-ups at least (section 5.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from data_prep.construction.responses import ANSWERER, ITEM
from data_prep.construction.steps.base import Row
from data_prep.sources.judgement_text import PAIR_TASK
from judging.errors import CustosError, FieldError
from judging.types import JudgeRequest

ANSWERERS = "answerers"
"""Metadata of a pair: who wrote A, and who wrote B. People do not see it."""


@dataclass
class Paired:
    """The pairs of some responses."""

    pairs: list[Row] = field(default_factory=list)
    too_few: list[str] = field(default_factory=list)
    """Questions that have too few responses for the match-ups."""


def pair_responses(responses: Iterable[JudgeRequest], least: int, seed: int = 0) -> Paired:
    """Pair the responses to each question so that each meets at least so many others.

    Args:
        responses: Rows of ``write_responses``, of any number of models.
        least: Match-ups of each response.
        seed: Draws who meets whom, and who is A.

    Raises:
        CustosError: If a row does not say what it answers and who wrote it, or a model answers a
            question twice.
    """
    by_question: dict[str, dict[str, JudgeRequest]] = {}
    for response in responses:
        question, answerer = (response.metadata.get(name) for name in (ITEM, ANSWERER))
        if question is None or answerer is None or len(response.responses) != 1:
            fault = f"needs one response, with {ITEM} and {ANSWERER} in its metadata"
            raise CustosError(f"row '{response.id}': {fault}")
        answers = by_question.setdefault(str(question), {})
        if str(answerer) in answers:
            fault = f"'{answerer}' answers question '{question}' twice"
            raise FieldError("metadata", fault, f"row '{response.id}'")
        answers[str(answerer)] = response
    paired, rng = Paired(), Random(seed)
    for question, answers in by_question.items():
        if len(answers) <= least:
            paired.too_few.append(question)
            continue
        names = rng.sample(sorted(answers), len(answers))
        for match in match_ups(len(names), least):
            first, second = rng.sample([names[number] for number in match], 2)
            paired.pairs.append(_pair(question, first, second, answers))
    return paired


def match_ups(count: int, least: int) -> list[tuple[int, int]]:
    """Return the fewest pairs among so many in which everyone meets at least so many others.

    All stand in a circle (Harary, 1962). Everyone meets the nearest on both sides; if that is one
    too few, also the one across. Where an odd number cannot meet an odd number of others, one meets
    one more.
    """
    pairs = [
        (place, (place + distance) % count)
        for distance in range(1, least // 2 + 1)
        for place in range(count)
    ]
    if least % 2:
        pairs += [(place, place + count // 2) for place in range((count + 1) // 2)]
    return pairs


def _pair(question: str, first: str, second: str, answers: dict[str, JudgeRequest]) -> Row:
    """Return the row that people fill in: what both responses share, and the two of them."""
    shared = answers[first].model_dump(
        mode="json",
        include={"question", "references", "reference_mode", "choices", "images", "metadata"},
        exclude_unset=True,
    )
    metadata = {k: v for k, v in shared["metadata"].items() if k != ANSWERER}
    return {
        **shared,
        "id": f"{question}/{first}/{second}",
        "task": PAIR_TASK,
        "responses": [answers[name].response for name in (first, second)],
        "metadata": {**metadata, ANSWERERS: [first, second]},
    }
