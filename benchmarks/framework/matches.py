"""Matches between models that answered the same open-ended questions, and their rankings."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.framework.base import Benchmark
from benchmarks.framework.correction import sampling_probabilities
from benchmarks.framework.files import Row
from evaluation.correction.scores import SAMPLING_PROBABILITY, UnknownSampling
from evaluation.estimate import share, without_nan
from evaluation.intervals import Ints, number_clusters
from evaluation.ranking.bradley_terry import (
    HALF_POINTS,
    MatchResults,
    bradley_terry,
    ranking_agreement,
)
from evaluation.ranking.tournament import rank_by_people, rank_models
from judging.errors import CustosError, FieldError
from judging.tasks.truthful import TIE
from judging.types import JudgeRequest, Mode, Verdict, parse_record

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
    """Index a model's responses by item id.

    Raise ``FieldError`` if a row has no id or no response, or repeats an id.
    """
    responses: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        key = str(row.get(benchmark.item_id, ""))
        response = row.get("response")
        if not key or key in responses:
            fault = f"'{key}' occurs twice" if key else "is missing"
            raise FieldError(benchmark.item_id, fault, f"row {number}")
        if not isinstance(response, str):
            raise FieldError("response", "is missing", f"row {number}")
        responses[key] = response
    return responses


def pair_up(
    benchmark: Benchmark,
    items: Iterable[Row],
    responses: Responses,
    *,
    task: str,
    mode: Mode | None = None,
    with_reference: bool = False,
) -> list[ModelMatch]:
    """Match every two models on every question that both answered.

    Items are the official ones, pictures in ``images``; ``task`` is a pair task. ``critique`` as
    mode has the judge write before it decides; the default is the judge's own mode.
    ``with_reference`` shows the judge the text of the right option. Raise ``CustosError`` if there
    are fewer than two models or no two of them answered one question.
    """
    if len(responses) < 2:
        raise CustosError("a tournament needs the responses of two models or more")
    matches = []
    for row in items:
        key = str(row.get(benchmark.item_id))
        for first, second in itertools.combinations(sorted(responses), 2):
            pair = responses[first].get(key), responses[second].get(key)
            if None in pair:
                continue
            fields = {
                "id": f"{key}/{first}/{second}",
                "task": task,
                "mode": mode,
                "question": benchmark.required_text(row, "question"),
                "references": _right_option(benchmark, row) if with_reference else (),
                "responses": pair,
                "images": row.get("images") or (),
            }
            location = f"{benchmark.location(row)}, {first} and {second}"
            request = parse_record(JudgeRequest, fields, location)
            matches.append(ModelMatch(key, first, second, request))
    if not matches:
        raise CustosError("no two models answered the same question")
    return matches


@dataclass(frozen=True)
class Tournament:
    """Matches with a judge's verdict on each."""

    matches: Sequence[ModelMatch]
    verdicts: Sequence[Verdict]

    def table(self) -> dict[str, Any]:
        """Rank the models.

        A judge that sees no difference, or abstains because its two orders disagree, gives half a
        win to each side. A judge that has probabilities merges both orders into a label, which
        decides. Matches without a decision are left out and counted. Intervals keep questions
        together, because the matches on one question are not independent.

        The result is that of ``evaluation.ranking.tournament.rank_models`` with ``questions``,
        ``statuses``, ``coverage`` and ``judges``. Raise ``CustosError`` if nothing was decided or a
        model cannot be ranked.
        """
        decided, results, clusters = _decided(self.matches, map(_outcome, self.verdicts))
        cleaned: dict[str, Any] = without_nan(
            {
                **rank_models(results, clusters),
                "questions": int(clusters.max()) + 1,
                "coverage": len(decided) / len(self.matches),
                "statuses": dict(Counter(verdict.status for verdict in self.verdicts)),
                "judges": sorted({verdict.judge for verdict in self.verdicts if verdict.judge}),
            }
        )
        return cleaned

    def compare(self, others: Sequence[Verdict]) -> dict[str, Any]:
        """Compare the judge with another, or with people, on the matches that both decided.

        The result has Kendall's tau-b of the rankings, as ``ranking_agreement``; ``same_outcome``,
        the share of the matches with the same outcome, ties too, with its interval; and
        ``matches``, the number that both decided. Raise ``CustosError`` if no match was decided by
        both, or a model cannot be ranked.
        """
        outcomes = zip(map(_outcome, self.verdicts), map(_outcome, others), strict=True)
        kept = [(m, both) for m, both in zip(self.matches, outcomes, strict=True) if all(both)]
        of_both = [match for match, _ in kept]
        ratings = []
        for judge in (0, 1):
            _, results, clusters = _decided(of_both, (both[judge] for _, both in kept))
            ratings.append(bradley_terry(results, clusters))
        is_same = np.array([first == second for _, (first, second) in kept])
        same_outcome = share(is_same, None, clusters)
        ours, theirs = ratings
        agreement = ranking_agreement(ours, theirs, len(np.unique(clusters)))
        cleaned: dict[str, Any] = without_nan(
            {**agreement, "same_outcome": same_outcome, "matches": len(kept)}
        )
        return cleaned

    def by_people(self, people: Iterable[Row], random_sample: bool = False) -> dict[str, Any]:
        """Estimate the ranking by people, who decided some of the matches.

        Rows have the ``id`` of a match and people's ``label``: ``A``, ``B``, or ``tie`` or the
        label ``None`` (a text) for neither; rows without a label are left out. They are a
        ``random_sample``, or rows have their ``sampling_probability``. The result is that of
        ``evaluation.ranking.tournament.rank_by_people``. Raise ``FieldError`` if a row names no
        match, or one twice, or has another label or probability, and ``CustosError`` if people
        decided too few matches, or nobody says how these were picked.
        """
        ids = {match.request.id for match in self.matches}
        by_id: dict[str, float] = {}
        rows = list(people)
        for number, row in enumerate(rows, 1):
            key, label = str(row.get("id", "")), row.get("label")
            if key not in ids or key in by_id:
                fault = f"'{key}' occurs twice" if key in by_id else f"'{key}' is no match"
                raise FieldError("id", fault, f"row {number}")
            if label in (None, ""):
                continue
            outcome = "tie" if label == TIE else label
            if outcome not in HALF_POINTS:
                raise FieldError("label", f"'{label}' is not A, B, {TIE} or tie", f"row {number}")
            by_id[key] = HALF_POINTS[outcome]
        decided, results, clusters = _decided(self.matches, map(_outcome, self.verdicts))
        drawn = sampling_probabilities(rows, "id", by_id)
        labels, chances = (
            np.array([of_match.get(match.request.id, np.nan) for match in decided])
            for of_match in (by_id, drawn)
        )
        if np.isnan(labels).any() and not (drawn or random_sample):
            raise UnknownSampling
        try:
            ranked = rank_by_people(results, labels, clusters, chances if drawn else None)
        except UnknownSampling:
            fault = "1 throughout says that all matches were drawn, but some have no label"
            raise FieldError(SAMPLING_PROBABILITY, fault, "matches by people") from None
        return dict(without_nan(ranked))


def _decided(
    matches: Sequence[ModelMatch], outcomes: Iterable[str | None]
) -> tuple[list[ModelMatch], MatchResults, Ints]:
    """Keep the matches that have an outcome, with their results and their questions' numbers."""
    kept = [(m, outcome) for m, outcome in zip(matches, outcomes, strict=True) if outcome]
    results = MatchResults.of((match.first, match.second, outcome) for match, outcome in kept)
    return [m for m, _ in kept], results, number_clusters([match.question for match, _ in kept])


def _outcome(verdict: Verdict) -> str | None:
    """Read ``A``, ``B`` or ``tie`` off a verdict; ``None`` where nothing was decided."""
    if verdict.status == "abstain" or verdict.label == TIE:
        return "tie"
    return verdict.label


def _right_option(benchmark: Benchmark, row: Row) -> tuple[str, ...]:
    # Results of the official code, and items that custos makes, name it ground_truth.
    options, answer = row.get("options"), str(row.get("answer", row.get("ground_truth", "")))
    letter = answer.strip("() ")
    index = "ABCD".find(letter) if len(letter) == 1 else -1
    if not isinstance(options, list) or not 0 <= index < len(options):
        fault = f"'{answer}' names none of the options"
        raise FieldError("answer", fault, benchmark.location(row))
    return (str(options[index]),)
