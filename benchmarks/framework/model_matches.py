"""Open-ended answers of several models, compared two by two: win matrix and ratings."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.framework.base import Benchmark, required_text
from benchmarks.framework.files import Row
from evaluation.estimate import without_nan
from evaluation.intervals import RESAMPLES, number_clusters
from evaluation.ranking.agreement import ranking_agreement
from evaluation.ranking.bradley_terry import bradley_terry
from evaluation.ranking.match_results import MatchResults
from evaluation.ranking.tournament import rank_models
from judging.errors import CustosError
from judging.tasks.truthful import TIE
from judging.types import JudgeRequest, Verdict, parse_record

Responses = Mapping[str, Mapping[str, str]]
"""Model to item id to its response."""


@dataclass(frozen=True)
class ModelMatch:
    """Two models' answers to one question."""

    question: str
    """Item id."""
    first: str
    second: str
    request: JudgeRequest


def responses_by_id(benchmark: Benchmark, rows: Iterable[Row]) -> dict[str, str]:
    """A model's responses by item id.

    Raises:
        CustosError: If a row has no id of its own or no response.
    """
    found: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        key = str(row.get(benchmark.item_id, ""))
        response = row.get("response")
        if not key or key in found or not isinstance(response, str):
            fault = f"'{key}' occurs twice" if key in found else "or field 'response' is missing"
            raise CustosError(f"row {number}: field '{benchmark.item_id}' {fault}")
        found[key] = response
    return found


def pair_up(
    benchmark: Benchmark,
    items: Iterable[Row],
    responses: Responses,
    *,
    task: str,
    mode: str = "score",
    with_reference: bool = False,
) -> list[ModelMatch]:
    """Every two models on every question that both answered.

    Args:
        benchmark: Whose items they are.
        items: The official items, pictures in ``images``.
        responses: Responses of at least two models.
        task: Pair task.
        mode: ``score``, or ``critique`` to have the judge write before it decides.
        with_reference: Show the judge the text of the right option.

    Raises:
        CustosError: If there are fewer than two models or no two of them answered one question.
    """
    if len(responses) < 2:
        raise CustosError("a tournament needs the responses of two models or more")
    matches = []
    for row in items:
        key = str(row.get(benchmark.item_id))
        for first, second in itertools.combinations(sorted(responses), 2):
            said = [responses[model].get(key) for model in (first, second)]
            if None in said:
                continue
            request = parse_record(
                JudgeRequest,
                {
                    "id": f"{key}/{first}/{second}",
                    "task": task,
                    "mode": mode,
                    "question": required_text(row, "question", benchmark.item_id),
                    "references": _right_option(row) if with_reference else (),
                    "responses": said,
                    "images": row.get("images") or (),
                },
                f"item '{key}', {first} and {second}",
            )
            matches.append(ModelMatch(key, first, second, request))
    if not matches:
        raise CustosError("no two models answered the same question")
    return matches


def tournament_table(
    matches: Sequence[ModelMatch],
    verdicts: Sequence[Verdict],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """The table of a tournament.

    A judge that finds no difference, or whose two orders disagree, gives half a win to each side.
    Matches without any decision are left out and counted. Intervals resample questions, because the
    matches on one question are not independent.

    Args:
        matches: What was judged.
        verdicts: One per match, in order.
        resamples: Bootstrap resamples.
        seed: Their seed.

    Returns:
        As ``evaluation.ranking.tournament.rank_models``; also ``questions``, ``statuses``,
        ``coverage`` and ``judges``.

    Raises:
        CustosError: If nothing was decided or a model cannot be ranked.
    """
    decided = [
        (match, outcome)
        for match, verdict in zip(matches, verdicts, strict=True)
        if (outcome := _outcome(verdict)) is not None
    ]
    played = MatchResults.of((match.first, match.second, outcome) for match, outcome in decided)
    clusters = number_clusters([match.question for match, _ in decided])
    cleaned: dict[str, Any] = without_nan(
        {
            **rank_models(played, clusters, resamples, seed),
            "questions": int(clusters.max()) + 1,
            "coverage": len(decided) / len(matches),
            "statuses": dict(Counter(verdict.status for verdict in verdicts)),
            "judges": sorted({verdict.judge for verdict in verdicts if verdict.judge}),
        }
    )
    return cleaned


def compare_rankings(
    matches: Sequence[ModelMatch],
    verdicts: Sequence[Verdict],
    others: Sequence[Verdict],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Kendall's tau-b between two judges' rankings of the models, on matches that both decided.

    Args:
        matches: What was judged.
        verdicts: One judge's, one per match.
        others: The other judge's, or people's.
        resamples: Bootstrap resamples of whole questions, the same for both.
        seed: Their seed.

    Returns:
        As ``evaluation.ranking.agreement.ranking_agreement``, and ``matches``, those both decided.

    Raises:
        CustosError: If no match was decided by both, or a model cannot be ranked.
    """
    both = [
        (match, (mine, theirs))
        for match, one, other in zip(matches, verdicts, others, strict=True)
        if (mine := _outcome(one)) is not None and (theirs := _outcome(other)) is not None
    ]
    clusters = number_clusters([match.question for match, _ in both])
    ratings = []
    for side in (0, 1):
        played = MatchResults.of((match.first, match.second, said[side]) for match, said in both)
        ratings.append(bradley_terry(played, clusters, resamples, seed))
    cleaned: dict[str, Any] = without_nan({**ranking_agreement(*ratings), "matches": len(both)})
    return cleaned


def _outcome(verdict: Verdict) -> str | None:
    """``A``, ``B``, ``tie``, or ``None`` where nothing was decided."""
    if verdict.status == "abstain" or verdict.label == TIE:
        return "tie"
    return verdict.label


def _right_option(row: Row) -> tuple[str, ...]:
    options, letter = row.get("options"), str(row.get("answer", ""))
    place = "ABCD".find(letter.strip("() "))
    if not isinstance(options, list) or not letter or not 0 <= place < len(options):
        raise CustosError(f"field 'answer': '{letter}' names none of the options")
    return (str(options[place]),)
