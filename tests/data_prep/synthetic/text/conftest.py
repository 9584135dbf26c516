import pytest

from data_prep.made.quick_scores import generate_examples
from judging.types import LabelledExample


@pytest.fixture(scope="package")
def train_rows() -> list[LabelledExample]:
    return list(generate_examples(4000, seed=1, wordings="train"))


@pytest.fixture(scope="package")
def test_rows() -> list[LabelledExample]:
    return list(generate_examples(4000, seed=1, wordings="test"))
