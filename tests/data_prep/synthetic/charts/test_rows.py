"""Labels and groups of rows."""

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.charts.rows import plan_rows
from data_prep.made.charts.scenes import KINDS
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import LabelledExample

LABELS = {"Correct"} | {f"{s}; {t}" for s in ("Partial", "Wrong") for t in ERROR_TYPES}
WORDING_SPLITS = ("train", "test", "all")

seeds = st.integers(min_value=-(2**63), max_value=2**63)


def test_four_rows_ask_about_one_picture_or_about_two_side_by_side(
    train_rows: list[LabelledExample],
) -> None:
    rows, captions_of = Counter(row.group for row in train_rows), defaultdict(set)
    for row in train_rows:
        captions_of[row.group].add(row.metadata["caption"])
        paired = {"twin", "contrast"} & set(row.metadata)
        assert all(row.metadata[key] == row.group for key in paired)
    assert set(rows.values()) == {4}
    assert {len(captions) for captions in captions_of.values()} == {1, 2}
    assert len({row.id for row in train_rows}) == len(train_rows)


def test_labels_come_in_their_shares(train_rows: list[LabelledExample]) -> None:
    types = Counter(row.error_type for row in train_rows)
    shares = {name: count / types.total() for name, count in types.items()}
    expected: dict[str | None, float] = {None: 0.40, **dict.fromkeys(ERROR_TYPES, 0.12)}
    assert shares == pytest.approx(expected, abs=0.025)
    errors = [row.label for row in train_rows if row.error_type]
    partial = sum(label.startswith("Partial") for label in errors) / len(errors)
    assert partial == pytest.approx(0.25, abs=0.04)


def test_every_kind_shows_every_label(
    train_rows: list[LabelledExample], test_rows: list[LabelledExample]
) -> None:
    labels = defaultdict(set)
    for row in (*train_rows, *test_rows):
        labels[row.metadata["kind"]].add(row.label)
    assert dict(labels) == dict.fromkeys(KINDS, LABELS)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(WORDING_SPLITS))
def test_rows_are_consistent(seed: int, wordings: Any) -> None:
    for planned in plan_rows(8, seed, wordings):
        row = planned.example
        score, _, error_type = row.label.partition("; ")
        assert (row.task, row.source, row.reference_mode) == ("hieval-ea", "charts", "all")
        assert (row.error_type or "") == error_type and row.label in LABELS
        assert row.references and row.response.strip() and "{" not in row.question
        assert score != "Partial" or len(row.references) > 1
        assert row.metadata["readings"] == planned.scene.readings()
