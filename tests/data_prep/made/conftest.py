"""Rows of the makers that several tests read."""

import pytest

from data_prep.made.benchmark_answers import generate_benchmark_answers
from data_prep.made.charts.rows import PlannedRow, plan_rows, plan_twins
from data_prep.made.quick_scores import generate_examples
from judging.types import LabelledExample


@pytest.fixture(scope="package")
def quick_train() -> list[LabelledExample]:
    return list(generate_examples(4000, seed=1, wordings="train"))


@pytest.fixture(scope="package")
def quick_test() -> list[LabelledExample]:
    return list(generate_examples(2400, seed=1, wordings="test"))


@pytest.fixture(scope="package")
def chart_train() -> list[LabelledExample]:
    return [row.example for row in plan_rows(2000, 1, "train")]


@pytest.fixture(scope="package")
def chart_test() -> list[LabelledExample]:
    return [row.example for row in plan_rows(3000, 1, "test")]


@pytest.fixture(scope="package")
def twins() -> list[PlannedRow]:
    return list(plan_twins(60, 1, "all"))


@pytest.fixture(scope="package")
def benchmark_rows() -> list[LabelledExample]:
    return [
        *generate_benchmark_answers(3_000, 3, "train"),
        *generate_benchmark_answers(1_500, 3, "test"),
    ]
