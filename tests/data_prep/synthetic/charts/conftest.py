import pytest

from data_prep.made.charts.rows import PlannedRow, plan_rows, plan_twins
from judging.types import LabelledExample


@pytest.fixture(scope="package")
def train_rows() -> list[LabelledExample]:
    return [row.example for row in plan_rows(6000, 1, "train")]


@pytest.fixture(scope="package")
def test_rows() -> list[LabelledExample]:
    return [row.example for row in plan_rows(4000, 1, "test")]


@pytest.fixture(scope="package")
def twins() -> list[PlannedRow]:
    return list(plan_twins(800, 1, "all"))
