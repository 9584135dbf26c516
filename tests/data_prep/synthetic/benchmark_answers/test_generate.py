"""Streams of rows: what they share, and what they must not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.benchmark_answers import MAKERS, generate_benchmark_answers
from data_prep.made.chart_answers import wordings_for
from judging.tasks import get_task
from judging.types import LabelledExample


def test_rows_are_rows_of_their_tasks(benchmark_rows: list[LabelledExample]) -> None:
    for row in benchmark_rows:
        task = get_task(row.task)
        task.check(row)
        task.target(row)
        assert task.rule_if_empty(row) is None
        assert "{" not in row.question
        assert "{" not in row.response or "boxed" in row.response
    assert len({row.id for row in benchmark_rows}) == len(benchmark_rows)
    assert {row.task for row in benchmark_rows} == set(MAKERS)


def test_training_and_test_share_no_wording() -> None:
    trained, tested = set(_texts(wordings_for("training"))), set(_texts(wordings_for("held_out")))
    assert len(trained) > 250
    shared = trained & tested
    assert not shared
    stripped = {_words(text) for text in trained} & {_words(text) for text in tested}
    assert not {text for text in stripped if text}


def _texts(value: Any) -> Iterator[str]:
    """Yield every wording in a table of wordings but bare slots and joints between elements."""
    if is_dataclass(value):
        for field in fields(value):
            if field.name not in ("joints", "unit", "low", "high"):
                yield from _texts(getattr(value, field.name))
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)


def _words(text: str) -> str:
    """Return the letters of a wording, so that punctuation makes no difference."""
    return re.sub(r"\W+", " ", re.sub(r"\{\w+\}", "", text)).strip().casefold()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1_000), st.integers(1, 25), st.sampled_from(("train", "test")))
def test_a_longer_stream_begins_with_the_shorter(seed: int, size: int, wordings: Any) -> None:
    longer = list(generate_benchmark_answers(size + 5, seed, wordings))
    assert list(generate_benchmark_answers(size, seed, wordings)) == longer[:size]


def test_questions_are_new() -> None:
    """Invented names keep questions apart, so that none is learned by heart."""
    rows = list(generate_benchmark_answers(1_200, 5, "train"))
    questions = {row.question for row in rows}
    drawn = {row.id.rpartition("-")[0] for row in rows}
    assert len(questions) > 0.85 * len(drawn)
