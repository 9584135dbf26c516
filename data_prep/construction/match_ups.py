"""Responses brought together for people: in pairs to compare, and in groups to score.

TruthfulJudge compares each response with several others, in three match-ups at least (section 5.1),
and shows up to four at once to be scored (Figure 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from data_prep.construction.responses import ANSWERER, ITEM
from data_prep.construction.steps.base import Row
from data_prep.sources.conversations import PAIR_TASK
from judging.errors import CustosError, FieldError
from judging.types import JudgeRequest

ANSWERERS = "answerers"
"""Metadata of such a row: who wrote A, who wrote B and so on. People do not see it."""
MOST_TOGETHER = 4
"""Responses that are scored on one screen."""
KEYS = ("id", "question", "responses", "metadata")
"""Keys of every row here."""


@dataclass
class Paired:
    """Pairs of responses, and the questions that have none."""

    pairs: list[Row] = field(default_factory=list)
    too_few: list[str] = field(default_factory=list)
    """Questions that have too few responses for the match-ups."""


def pair_responses(responses: Iterable[JudgeRequest], least: int, seed: int = 0) -> Paired:
    """Pair the responses to each question so that each one is in at least ``least`` pairs.

    Args:
        responses: Rows of ``write_responses``, of any number of models.
        least: Match-ups of each response.
        seed: Draws who meets whom, and who is A.

    Raises:
        CustosError: If a row does not say what it answers and who wrote it, or a model answers a
            question twice.
    """
    paired, rng = Paired(), Random(seed)
    for question, answers in _by_question(responses).items():
        if len(answers) <= least:
            paired.too_few.append(question)
            continue
        names = rng.sample(sorted(answers), len(answers))
        for match in match_ups(len(names), least):
            first, second = rng.sample([names[number] for number in match], 2)
            row = _together(question, (first, second), answers)
            paired.pairs.append({**row, "task": PAIR_TASK})
    return paired


def group_responses(responses: Iterable[JudgeRequest], seed: int = 0) -> list[Row]:
    """Return the responses to each question in rows of up to four, as evenly as can be.

    Args:
        responses: As for :func:`pair_responses`.
        seed: Draws who is scored beside whom.

    Raises:
        CustosError: As :func:`pair_responses`.
    """
    rows, rng = [], Random(seed)
    for question, answers in _by_question(responses).items():
        names = rng.sample(sorted(answers), len(answers))
        count = -(-len(names) // MOST_TOGETHER)
        rows += [_together(question, names[start::count], answers) for start in range(count)]
    return rows


def _by_question(responses: Iterable[JudgeRequest]) -> dict[str, dict[str, JudgeRequest]]:
    """Return responses by question and model.

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
    return by_question


def match_ups(count: int, least: int) -> list[tuple[int, int]]:
    """Return the fewest pairs of ``count`` members in which each is in at least ``least`` of them.

    The members are put in a circle (Harary, 1962). Each is paired with the nearest on both sides,
    and for an odd ``least`` also with the one across. If both numbers are odd, one member is in one
    pair more.

    Args:
        count: Members, numbered from 0; more than ``least``.
        least: Pairs of each member.
    """
    pairs = [
        (member, (member + distance) % count)
        for distance in range(1, least // 2 + 1)
        for member in range(count)
    ]
    if least % 2:
        pairs += [(member, member + count // 2) for member in range((count + 1) // 2)]
    return pairs


def _together(question: str, names: Sequence[str], answers: Mapping[str, JudgeRequest]) -> Row:
    """Return the row that people fill in: what some responses share, and the responses."""
    shared = answers[names[0]].model_dump(
        mode="json",
        include={"question", "references", "reference_mode", "choices", "images", "metadata"},
        exclude_unset=True,
    )
    metadata = {k: v for k, v in shared["metadata"].items() if k != ANSWERER}
    return {
        **shared,
        "id": "/".join((question, *names)),
        "responses": [answers[name].response for name in names],
        "metadata": {**metadata, ANSWERERS: list(names)},
    }
