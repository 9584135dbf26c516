"""Rows in the wordings of training and in those that are held out."""

from __future__ import annotations

import pytest

from data_prep.made.benchmark_answers import generate_benchmark_answers
from judging.types import LabelledExample


@pytest.fixture(scope="session")
def benchmark_rows() -> list[LabelledExample]:
    return [
        *generate_benchmark_answers(3_000, 3, "train"),
        *generate_benchmark_answers(1_500, 3, "test"),
    ]
