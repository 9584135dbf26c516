"""Graded items as a page shows them."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import Row
from benchmarks.framework.tables import stored_verdicts
from evaluation.outcomes import full_label
from judging.errors import CustosError
from judging.scoring.prompts import read_image

THUMBNAIL_PIXELS = 480
THUMBNAIL_QUALITY = 78
NOT_SCORED = "not scored"
REFERENCE_FIELDS = ("references", "reference", "ref_answer", "ground_truth", "answer")
RESPONSE_FIELDS = ("response", "responses", "fact_response", "mind_response")
"""What benchmarks call them; those that a row has are shown."""


@dataclass(frozen=True)
class Shown:
    """One item, ready to be laid out; all texts are from outside."""

    id: str
    question: str
    references: tuple[str, ...]
    responses: tuple[str, ...]
    images: tuple[str, ...]
    facets: Mapping[str, str]
    score: float | None
    """Headline score."""
    verdict: str
    """The judge's labels, or the score where rules or another grader gave it."""
    people: str | None
    posteriors: Mapping[str, Mapping[str, float]]
    """Task to label to probability."""
    notes: tuple[str, ...]
    """Why a verdict holds no label, critiques."""


def show_items(
    benchmark: Benchmark,
    rows: Sequence[Row],
    scores: Mapping[str, float | None],
    people: Mapping[str, str],
) -> list[Shown]:
    """Lay out graded rows.

    Args:
        benchmark: Whose items they are.
        rows: Graded items.
        scores: Headline score by id.
        people: What people said, by id.

    Raises:
        CustosError: If a row's pictures or verdicts are none.
    """
    return [_show(benchmark, row, scores, people) for row in rows]


def _show(
    benchmark: Benchmark,
    row: Row,
    scores: Mapping[str, float | None],
    people: Mapping[str, str],
) -> Shown:
    key = str(row.get(benchmark.item_id, ""))
    verdicts = stored_verdicts(row)
    score = scores.get(key)
    labels = [full_label(verdict) or NOT_SCORED for verdict in verdicts.values()]
    without = NOT_SCORED if score is None else f"{score:g}"
    return Shown(
        id=key,
        question=str(row.get("question", "")),
        references=_texts(row, REFERENCE_FIELDS)[:1],
        responses=_texts(row, RESPONSE_FIELDS),
        images=_images(row, key),
        facets=benchmark.facets_of(row),
        score=score,
        verdict=", ".join(labels) or without,
        people=people.get(key),
        posteriors={
            task: verdict.probabilities
            for task, verdict in verdicts.items()
            if verdict.probabilities
        },
        notes=tuple(
            note
            for verdict in verdicts.values()
            for note in (verdict.message, verdict.critique)
            if note
        ),
    )


def thumbnails(items: Sequence[Shown]) -> dict[str, str]:
    """Small JPEGs of the items' pictures, as data URLs by source; those unreadable are left out.

    Web addresses are never fetched.
    """
    found = {}
    for source in dict.fromkeys(source for item in items for source in item.images):
        try:
            found[source] = _thumbnail(source)
        except CustosError:
            continue
    return found


def _thumbnail(source: str) -> str:
    picture = read_image(source)
    picture.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    buffer = io.BytesIO()
    picture.save(buffer, "jpeg", quality=THUMBNAIL_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _images(row: Row, key: str) -> tuple[str, ...]:
    named = row.get("images") or []
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise CustosError(f"item '{key}': field 'images': expected a list of file names")
    return tuple(named)


def _texts(row: Row, fields: Sequence[str]) -> tuple[str, ...]:
    found = []
    for field in fields:
        value = row.get(field)
        if isinstance(value, list):
            found.append(" / ".join(map(str, value)))
        elif value is not None:
            found.append(str(value))
    return tuple(found)
