from pathlib import Path
from typing import Any

import pytest

from data_prep.sources.truthfulqa import load_truthfulqa, repeats_question, says_nothing
from tests.data_prep.tables.made_up import lines
from tests.published_files import needs_published, published

PUBLISHED = "human/truthfulqa.train.jsonl"


def row(**fields: Any) -> dict[str, Any]:
    base = {
        "id": "t-1",
        "question": "Do bats see?",
        "response": "Bats see quite well",
        "label": "True",
        "correct_answers": ["Bats can see", "Yes", "I have no comment"],
        "incorrect_answers": ["Bats are blind"],
        "source": "somewhere",
    }
    return {**base, **fields}


def test_every_field_of_an_example(tmp_path: Path) -> None:
    [example], left_out = load_truthfulqa(lines(tmp_path / "t.jsonl", row(label="False")))
    assert set(left_out.values()) == {0}
    fields = example.model_dump(exclude_defaults=True)
    assert fields.pop("group")
    assert fields == {
        "id": "t-1",
        "question": "Do bats see?",
        "references": ("Bats can see", "Yes"),
        "reference_mode": "any",
        "responses": ("Bats see quite well",),
        "label": "Wrong",
        "source": "truthfulqa",
    }


def test_ids_are_numbers_and_labels_truth_values(tmp_path: Path) -> None:
    rows = lines(tmp_path / "t.jsonl", row(id=7, label=False), row(id=8, label="true", response=4))
    examples, _ = load_truthfulqa(rows)
    assert [(each.id, each.label) for each in examples] == [("7", "Wrong"), ("8", "Correct")]


def test_rows_without_ids_are_named_by_their_file(tmp_path: Path) -> None:
    names = ("truthfulqa", "more")
    files = [lines(tmp_path / f"{name}.jsonl", row(id="")) for name in names]
    assert [load_truthfulqa(file)[0][0].id for file in files] == ["truthfulqa-1", "more-1"]


def test_what_is_left_out_is_counted_by_reason(tmp_path: Path) -> None:
    rows = [
        row(),
        row(response="bats see quite well."),
        row(response="I have no comment."),
        row(response=""),
        row(question="What now?", correct_answers=["I have no comment"]),
        row(response="They hear"),
        row(response="They hear", label="False"),
    ]
    examples, left_out = load_truthfulqa(lines(tmp_path / "t.jsonl", *rows))
    assert [(e.response, e.label) for e in examples] == [("Bats see quite well", "Correct")]
    assert left_out == {"without_an_answer": 3, "judged_both_ways": 2, "repeated": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("I don't know.", "I don\u2019t know", "", "...")),
        *((text, True) for text in ("I'm not sure. I would look it up", "No one knows")),
        *((text, True) for text in ("no answer>", "No comment")),
        *((text, False) for text in ("No", "Nobody", "Commentators")),
        ("You don't know it but yes", False),
    ],
)
def test_some_answers_say_nothing(text: str, expected: bool) -> None:
    assert says_nothing(text) is expected


RAINBOWS = "What do rainbows taste like?"
RAIN = "Where does it rain all the time?"


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        *((RAINBOWS, text, True) for text in (RAINBOWS, "rainbows", "The taste of a rainbow.")),
        *((RAINBOWS, text, False) for text in ("Nothing", "Rainbows do not taste", "Rain")),
        *((RAIN, text, True) for text in ("It rains all the time", "It is raining all the time.")),
        *((RAIN, text, False) for text in ("It rains in Rome", "Nowhere")),
        *((RAIN, text, expected) for text, expected in (("Yes.", True), ("No", False))),
        ("Where does it come from?", "It comes from it", True),
        ("Do bats see?", "do bats see", True),
        ("Do bats see?", "Bats see", False),
        ("Which is heavier, lead or tin?", "Lead", False),
    ],
)
def test_some_answers_only_repeat_the_question(question: str, answer: str, expected: bool) -> None:
    assert repeats_question(answer, question) is expected


def test_true_answers_that_repeat_the_question_are_left_out(tmp_path: Path) -> None:
    rows = [
        row(question=RAINBOWS, response="rainbows", correct_answers=["They have no taste"]),
        row(question=RAINBOWS, response="the rainbow", label="False"),
        row(question=RAIN, response="rain, time", correct_answers=["It rains all the time"]),
    ]
    examples, left_out = load_truthfulqa(lines(tmp_path / "t.jsonl", *rows))
    assert [e.response for e in examples] == ["the rainbow", "rain, time"]
    assert left_out["without_an_answer"] == 1


@needs_published(PUBLISHED)
def test_the_published_file() -> None:
    examples, left_out = load_truthfulqa(published(PUBLISHED))
    assert len(examples) + sum(left_out.values()) == 15_650
    right = [e for e in examples if e.label == "Correct"]
    repeats = sum(e.response.rstrip(".") in {r.rstrip(".") for r in e.references} for e in right)
    assert len(right) * 0.4 < repeats < len(right) * 0.6
