"""Graded items as a page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.framework.base import Benchmark
from benchmarks.framework.files import Row
from benchmarks.framework.tables import stored_verdicts
from evaluation.outcomes import full_label
from judging.errors import FieldError

NOT_SCORED = "not scored"
REFERENCE_FIELDS = ("references", "reference", "ref_answer", "ground_truth", "answer")
RESPONSE_FIELDS = ("response", "responses", "fact_response", "mind_response")
"""Fields of all benchmarks; a page shows those that a row has."""


@dataclass(frozen=True)
class ItemView:
    """One item, ready to be laid out; all its texts come from outside."""

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
    """People's label."""
    posteriors: Mapping[str, Mapping[str, float]]
    """Task to label to probability."""
    notes: tuple[str, ...]
    """Reasons why a verdict holds no label, and critiques."""


def view_items(
    benchmark: Benchmark,
    rows: Sequence[Row],
    scores: Mapping[str, float | None],
    people: Mapping[str, str],
) -> list[ItemView]:
    """Prepare graded rows for a page.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: Graded items.
        scores: Headline score by id.
        people: People's label by id.

    Raises:
        FieldError: If a row's ``images`` or ``verdicts`` hold something else.
    """
    return [_view(benchmark, row, scores, people) for row in rows]


def _view(
    benchmark: Benchmark,
    row: Row,
    scores: Mapping[str, float | None],
    people: Mapping[str, str],
) -> ItemView:
    key = str(row.get(benchmark.item_id, ""))
    verdicts = stored_verdicts(row)
    score = scores.get(key)
    labels = [full_label(verdict) or NOT_SCORED for verdict in verdicts.values()]
    score_text = NOT_SCORED if score is None else f"{score:g}"
    return ItemView(
        id=key,
        question=str(row.get("question", "")),
        references=_texts(row, REFERENCE_FIELDS)[:1],
        responses=_texts(row, RESPONSE_FIELDS),
        images=_images(row, benchmark.location(row)),
        facets=benchmark.facets_of(row),
        score=score,
        verdict=", ".join(labels) or score_text,
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


def _images(row: Row, location: str) -> tuple[str, ...]:
    names = row.get("images") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FieldError("images", "expected a list of file names", location)
    return tuple(names)


def _texts(row: Row, fields: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of the fields that a row has; a list becomes one text."""
    texts = []
    for field in fields:
        value = row.get(field)
        if isinstance(value, list):
            texts.append(" / ".join(map(str, value)))
        elif value is not None:
            texts.append(str(value))
    return tuple(texts)
