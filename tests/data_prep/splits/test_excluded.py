import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.splits.filters import excluded_hash, read_excluded, without_excluded
from judging.errors import CustosError
from judging.types import LabelledExample


def example(question: str) -> LabelledExample:
    return LabelledExample(
        question=question, references=("a",), responses=("a",), label="Correct", id=question
    )


def test_the_hash_is_of_lower_case_words() -> None:
    expected = hashlib.sha256(b"what s the capital of france").hexdigest()
    assert excluded_hash("  What's the CAPITAL -- of_France?? ") == expected


@given(st.text(alphabet="abc XYZ09.,-_'\n\t"), st.text(alphabet=" .,?!-_\n", max_size=4))
def test_punctuation_and_case_do_not_matter(words: str, around: str) -> None:
    assert excluded_hash(f"{around}{words.upper()}{around}") == excluded_hash(words)


def test_an_excluded_question_takes_its_near_duplicates_along(tmp_path: Path) -> None:
    path = tmp_path / "out.sha256"
    path.write_text(excluded_hash("who wrote the long story of the northern sea") + "  name\n\n")
    rows = [
        example("Who wrote the long story of the northern sea?"),
        example("who wrote the long story of the northern seas"),
        example("who painted the harbour at night"),
    ]
    assert without_excluded(rows, read_excluded(path)) == rows[2:]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no hash"),
        (f"{'a' * 64}\nwho wrote it\n", "row 2: expected the SHA-256"),
        ("A" * 64, "row 1: expected the SHA-256"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "out.sha256"
    path.write_text(content)
    with pytest.raises(CustosError, match=message):
        read_excluded(path)
    with pytest.raises(CustosError, match="cannot be read"):
        read_excluded(tmp_path / "missing")
