import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.splits.filters import (
    count_words,
    drop_trivial,
    excluded_hash,
    keep_contested,
    read_excluded,
    read_verdicts,
    without_excluded,
)
from judging.errors import CustosError
from tests.data_prep.examples import example


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n---!?", 0),
        ("B", 1),
        ("(B)", 1),
        ("x = 12", 2),
        ("3.5", 2),
        ("The answer is 12.", 4),
        ("snake_case", 2),
        ("\u7b54\u6848\u662f12", 4),
        ("\u3053\u308c\u306f", 3),
        ("caf\u00e9 d\u00e9j\u00e0 vu", 3),
    ],
)
def test_count_words(text: str, words: int) -> None:
    assert count_words(text) == words


def test_trivial_responses_have_too_few_words() -> None:
    responses = [("B",), ("two words",), ("just three words",), ("A", "a longer one"), ("A", "B")]
    examples = [example("Q?", responses=texts) for texts in responses]
    assert [e.responses for e in drop_trivial(examples)] == [responses[2], responses[3]]
    assert [e.responses for e in drop_trivial(examples, 2)] == responses[1:4]
    assert list(drop_trivial(examples, 0)) == examples


C, P, W = "Correct", "Partial", "Wrong"


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ([C, C, C, C, C, C], False),
        ([P, W, C, C, C, C], False),
        ([P, W, W, C, C, C], True),
        ([W, W, W, W, W, W], True),
        ([P, W, None, C, C, C], False),
        ([None, None, None, None, None, None], False),
    ],
)
def test_three_of_six_must_disagree(labels: list[str | None], kept: bool) -> None:
    contested = keep_contested([example("Q?", C, id="a")], {"a": labels, "other": []})
    assert [e.id for e in contested] == (["a"] if kept else [])


def test_verdict_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps({"a": [C, None]}))
    assert read_verdicts(path) == {"a": [C, None]}
    bad: list[object] = [[], {"a": W}, {"a": [1]}]
    for content in bad:
        path.write_text(json.dumps(content))
        with pytest.raises(CustosError, match="v.json: "):
            read_verdicts(path)


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
    ("content", "place"),
    [("", "out.sha256: "), (f"{'a' * 64}\nwho wrote it\n", "row 2: "), ("A" * 64, "row 1: ")],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str, place: str) -> None:
    path = tmp_path / "out.sha256"
    path.write_text(content)
    with pytest.raises(CustosError, match=place):
        read_excluded(path)
    with pytest.raises(CustosError, match="missing: "):
        read_excluded(tmp_path / "missing")
