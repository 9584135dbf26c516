"""Rates of verdicts where people labelled nothing, corrected by how the judge was measured to err.

A judge that calls a share ``q`` of the answers right, a share ``s`` of those that people call right
(its sensitivity) and ``f`` of the others (its false-positive rate) stands for a rate of
``(q - f) / (s - f)`` by people (Rogan & Gladen 1978). It holds as long as the judge errs on these
rows as on those that it was measured on.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from evaluation.correction.scores import Rate, raw_rate
from evaluation.intervals import Z_95, Floats, Ints, Mask, number_clusters
from evaluation.outcomes import full_label
from judging.errors import CustosError, FieldError
from judging.judge.card import SHIPPED, shipped_judges
from judging.tasks import get_task, worth_under
from judging.types import LabelledExample, Verdict, score_of

CARD, REPORT = "reliability.json", "report.json"
"""Files of a judge's folder that say how it errs; the first one wins."""


class Figure(BaseModel, frozen=True):
    """A measured share with its 95 % interval; ``None`` where nothing was there to measure."""

    value: float | None
    low: float | None
    high: float | None
    n: int


class ErrorRates(BaseModel, frozen=True):
    """How often a judge gave a rubric's best label where people did, and where they did not."""

    label: str
    sensitivity: Figure
    false_positive_rate: Figure
    n: int
    questions: int
    source: str = ""
    """Where the figures are from, in words."""


@dataclass(frozen=True)
class JudgedRate:
    """A rate of verdicts, as it was judged and as people would have it."""

    raw: Rate
    corrected: Rate | None
    source: str
    """Source of the judge's measured errors or, if the rate is uncorrected, the reason."""

    def as_json(self, scale: float = 1.0) -> dict[str, Any]:
        """List ``raw``, ``corrected``, ``added_width`` and ``source`` as plain values.

        ``scale`` is what a rate of 1 is in the unit of the figures.
        """
        corrected = None if self.corrected is None else self.corrected.as_json(scale)
        raw = self.raw.as_json(scale)
        return {
            "raw": raw,
            "corrected": corrected,
            "added_width": None if corrected is None else added_width(raw, corrected),
            "source": self.source,
        }


def added_width(raw: Mapping[str, float], corrected: Mapping[str, float]) -> float:
    """Compute by how much the interval of a corrected rate is wider than that of the raw one."""
    return (corrected["high"] - corrected["low"]) - (raw["high"] - raw["low"])


def error_rates(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> dict[str, dict[str, Any]]:
    """Measure by rubric how a judge errs on the best label; pairs and scales have none.

    A rubric, such as ``hieval-qs/plain/any``, leads to the fields of :class:`ErrorRates`;
    ``people``, the rate of the label by people; ``judged``, a :class:`JudgedRate` of as many other
    rows that the judge alone would label as it did these; and, where it has more than two labels,
    ``shares``: by label, its rates by ``people`` and by the ``judge``.
    """
    by_rubric: dict[str, list[tuple[str, str, str]]] = {}
    ranked: dict[str, list[str]] = {}
    for example, verdict in zip(examples, verdicts, strict=True):
        rubric = get_task(example.task).full_rubric(example)
        if rubric not in ranked:
            ranked[rubric] = ranked_scores(rubric)
        if verdict.label is None or not ranked[rubric]:
            continue
        people, judge = (score_of(full_label(each)) for each in (example, verdict))
        by_rubric.setdefault(rubric, []).append((people, judge, example.group or example.asked))
    measured = {}
    for rubric, rows in sorted(by_rubric.items()):
        given, said = (np.array([row[side] for row in rows]) for side in (0, 1))
        best = ranked[rubric][0]
        truth, called = given == best, said == best
        clusters = number_clusters([question for *_, question in rows])
        errors = measure_errors(best, truth, called, clusters)
        everyone = np.ones_like(truth)
        judged = judged_rate(
            called.astype(np.float64),
            clusters,
            [rubric] * len(rows),
            {rubric: errors.model_copy(update={"source": f"these {len(rows):,} rows"})},
        )
        measured[rubric] = {
            **errors.model_dump(exclude={"source"}),
            "people": _share(truth, everyone, clusters).model_dump(),
            "judged": judged.as_json(),
        }
        if len(ranked[rubric]) > 2:
            measured[rubric]["shares"] = {
                score: {
                    side: _share(labels == score, everyone, clusters).model_dump()
                    for side, labels in (("people", given), ("judge", said))
                }
                for score in ranked[rubric]
            }
    return measured


def ranked_scores(rubric: str) -> list[str]:
    """List the scores under a full rubric, best first.

    There are none for pairs, for scores on a scale, and for a task that is not known here, as that
    of a service may be.
    """
    worth = worth_under(rubric)
    if not worth or get_task(rubric.partition("/")[0]).score_range is not None:
        return []
    best_first = sorted(worth, key=worth.__getitem__, reverse=True)
    return list(dict.fromkeys(map(score_of, best_first)))


def measure_errors(label: str, people: Mask, judge: Mask, clusters: Ints) -> ErrorRates:
    """Measure how a judge errs on a label, by whether people and judge gave it. Shapes ``[n]``."""
    return ErrorRates(
        label=label,
        sensitivity=_share(judge, people, clusters),
        false_positive_rate=_share(judge, ~people, clusters),
        n=len(people),
        questions=len(np.unique(clusters)),
    )


def _share(hits: Mask, among: Mask, clusters: Ints) -> Figure:
    if not among.any():
        return Figure(value=None, low=None, high=None, n=0)
    return Figure(**raw_rate(hits[among].astype(np.float64), clusters[among])._asdict())


def read_errors(source: Path) -> dict[str, ErrorRates]:
    """Read by rubric how a judge was measured to err, from a folder, a report or a card of a judge.

    Of several data sets of a card the first one counts. Raise ``CustosError`` for another file.
    """
    files = [source / name for name in (CARD, REPORT)] if source.is_dir() else [source]
    found: dict[str, ErrorRates] = {}
    for path in (path for path in files if path.is_file()):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise CustosError(f"{path}: no JSON; give a report.json or reliability.json") from None
        if not isinstance(content, dict):
            raise CustosError(f"{path}: no report and no card of a judge")
        data = content.get("data")
        parts = data if isinstance(data, dict) else {path.name: content}
        for name, part in parts.items():
            rates = part.get("error_rates", {}) if isinstance(part, dict) else {}
            for rubric, errors in parse_errors(rates, str(path)).items():
                where = f"{errors.n:,} rows of {name}"
                found.setdefault(rubric, errors.model_copy(update={"source": where}))
    return found


def parse_errors(rates: object, location: str) -> dict[str, ErrorRates]:
    """Read the JSON value of ``error_rates``; raise ``CustosError`` if it is something else."""
    try:
        return TypeAdapter(dict[str, ErrorRates]).validate_python(rates)
    except ValidationError as error:
        raise FieldError.from_validation(error, f"{location}: error_rates") from None


def errors_of_judge(name: str) -> dict[str, ErrorRates]:
    """Look up how a shipped judge errs, by rubric; empty for any other."""
    return read_errors(SHIPPED / name) if name in shipped_judges() else {}


def errors_in_folder(folder: Path | None) -> dict[str, ErrorRates]:
    """Read the measured errors in a judge's folder; empty where it has no report of ours."""
    try:
        return read_errors(folder) if folder is not None else {}
    except CustosError:  # a report of another program says nothing of the judge
        return {}


def judged_rate(
    hits: Floats,
    clusters: Ints,
    rubrics: Sequence[str | None],
    errors: Mapping[str, ErrorRates],
) -> JudgedRate:
    """Estimate the rate of verdicts with the best label, raw and corrected.

    Rubrics are corrected each by its own errors and put together by their numbers of rows. The
    squared halves of their intervals add up (Zou & Donner 2008), with what the choice of rubrics
    adds. ``hits`` are 1 for the best label, else 0: shape ``[n]``, at least one. A rubric of
    ``None`` marks a row that no judge decided, which needs no correction.
    """
    raw = raw_rate(hits, clusters)
    names = np.array(["" if rubric is None else f"/{rubric}" for rubric in rubrics])
    parts, sources = [], []
    for name in np.unique(names):
        rows = names == name
        part = raw_rate(hits[rows], clusters[rows])
        if name:
            rubric = str(name)[1:]
            if (known := errors.get(rubric)) is None:
                where = f"not measured under {rubric}" if rubric else "not known"
                return JudgedRate(raw, None, f"the judge's errors are {where}")
            sources.append(known.source)
            if (corrected := rogan_gladen(part, known)) is None:
                s, f = known.sensitivity.value, known.false_positive_rate.value
                reason = "the judge was not measured on both right and wrong answers"
                if s is not None and f is not None:
                    rate = f"false-positive rate of {f:.2f}"
                    reason = f"the judge's sensitivity of {s:.2f} is not clearly above its {rate}"
                return JudgedRate(raw, None, f"{reason} under {rubric}")
            part = corrected
        parts.append(part)
    whole = _together(parts, len(np.unique(clusters)))
    if whole.high <= 0 or whole.low >= 1:
        return JudgedRate(raw, None, "the judge's measured errors cannot give such a rate")
    value, low, high = np.clip(whole[:3], 0, 1).tolist()
    source = " and ".join(dict.fromkeys(filter(None, sources)))
    return JudgedRate(raw, Rate(value, low, high, whole.n), source)


def rogan_gladen(judged: Rate, errors: ErrorRates) -> Rate | None:
    """Correct a rate by a judge's measured errors; it may come to lie outside of 0 and 1.

    The interval holds every rate that the three measured shares do not contradict: with a true rate
    ``r``, ``q - (1 - r) f - r s`` is 0. Its error is put together from the halves of the three
    intervals, on the side where they would hide a difference (Zou & Donner 2008), so that likeness
    within questions, few rows and shares near 0 or 1 count as they do there. Without errors of the
    judge it is the interval of ``q`` itself. There is none (``None``) unless the sensitivity is
    clearly above the false-positive rate.
    """
    q = judged
    s, f = (_rate(figure) for figure in (errors.sensitivity, errors.false_positive_rate))
    if s is None or f is None:
        return None
    informed = s.value - f.value
    if informed <= np.hypot(s.value - s.low, f.high - f.value):
        return None

    score = q.value - f.value

    def end(of_q: float, of_f: float, of_s: float, side: int) -> float:
        """Solve ``(score - informed r)² = dq² + (1 - r)² df² + r² ds²`` for one root.

        It is 0 or 1 where no interval is bounded (Fieller 1954).
        """
        dq, df, ds = of_q - q.value, of_f - f.value, of_s - s.value
        squared, half = informed**2 - df**2 - ds**2, score * informed - df**2
        root = math.sqrt(max(half**2 - squared * (score**2 - dq**2 - df**2), 0.0))
        return (half + (root if side else -root)) / squared if squared > 0 else float(side)

    low, high = end(q.low, f.high, s.high, 0), end(q.high, f.low, s.low, 1)
    return Rate(score / informed, low, high, q.n)


def drawn_errors(rubric: str, errors: ErrorRates, draws: int) -> tuple[Floats, Floats]:
    """Draw sensitivities and false-positive rates, ``[B]``, that the measured ones may stand for.

    They are normal on either side of the measured value, as wide as the interval there. One rubric
    has the same draws each time.
    """
    rng = np.random.default_rng(zlib.crc32(rubric.encode()))
    drawn = []
    for figure in (errors.sensitivity, errors.false_positive_rate):
        rate = _rate(figure) or Rate(np.nan, np.nan, np.nan, 0)
        z = rng.standard_normal(draws) / Z_95
        away = np.where(z < 0, z * (rate.value - rate.low), z * (rate.high - rate.value))
        drawn.append(np.clip(rate.value + away, 0, 1))
    return drawn[0], drawn[1]


def _rate(figure: Figure) -> Rate | None:
    if figure.value is None or figure.low is None or figure.high is None:
        return None
    return Rate(figure.value, figure.low, figure.high, figure.n)


def _together(parts: Sequence[Rate], clusters: int) -> Rate:
    """Put the rates of parts together by their numbers of rows."""
    if len(parts) == 1:
        return parts[0]
    n = sum(part.n for part in parts)
    weights = np.array([part.n / n for part in parts])
    values, lows, highs = (
        np.array([getattr(part, end) for part in parts]) for end in ("value", "low", "high")
    )
    value = float(weights @ values)
    composition = Z_95**2 * float(weights @ (values - value) ** 2) / clusters
    below = np.sqrt(np.sum((weights * (values - lows)) ** 2) + composition)
    above = np.sqrt(np.sum((weights * (highs - values)) ** 2) + composition)
    return Rate(value, float(value - below), float(value + above), n)
