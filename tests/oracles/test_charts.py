from random import Random
from typing import Any

import pytest

from data_prep.made.charts.responses import frames, questions
from data_prep.made.charts.rows import plan_rows, plan_twins
from data_prep.made.words.wordings import wordings_of
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import LabelledExample
from tests.oracles.charts import audit_chart
from tests.oracles.report import disagreements

SCORES = ("Partial", "Wrong")


@pytest.mark.parametrize("wordings", ["train", "test"])
def test_clean_examples_pass(wordings: Any) -> None:
    rows = [row.example for row in plan_rows(2500, 11, wordings)]
    found = disagreements(rows, audit_chart)
    assert len(found) <= 0.001 * len(rows), found
    forms = {row.metadata["form"] for row in rows}
    assert forms == {frame.id for frame in wordings_of(frames(), wordings)}
    if wordings != "train":
        asked = {row.metadata["question_form"] for row in rows}
        assert asked >= {question.id for question in questions() if question.held_out}


def test_clean_twins_pass() -> None:
    twins = [row.example for row in plan_twins(400, 12, "all")]
    assert len(found := disagreements(twins, audit_chart)) <= 1, found


def test_planted_label_errors_are_caught() -> None:
    rng = Random(5)
    planted = [
        _with_wrong_label(rng, row.example)
        for deck in (plan_rows(400, 13, "all"), plan_twins(100, 13, "all"))
        for row in deck
    ]
    assert len(planted) == 500
    assert len(disagreements(planted, audit_chart)) >= 495


def _with_wrong_label(rng: Random, row: LabelledExample) -> LabelledExample:
    """Swap the score or the type, or both."""
    labels = ["Correct", *(f"{score}; {name}" for score in SCORES for name in ERROR_TYPES)]
    wrong = rng.choice([label for label in labels if label != row.label])
    return row.model_copy(update={"label": wrong})


def test_planted_errors_in_data_and_references_are_caught() -> None:
    for row in (planned.example for planned in plan_rows(200, 14, "all")):
        assert not disagreements([row], audit_chart)
        other = row.model_copy(update={"references": (*row.references, "99")})
        assert audit_chart(other).label == ""


def test_audit_sees_neither_label_nor_how_the_row_was_made() -> None:
    for row in (planned.example for planned in plan_rows(200, 15, "all")):
        readings = {"readings": row.metadata["readings"]}
        blind = row.model_copy(update={"label": "?", "error_type": None, "metadata": readings})
        assert audit_chart(blind) == audit_chart(row)


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("I keep A (7) and B (6). Answer: A and B", "Correct"),
        ("The picture shows A is 7, B is 6 and C is 2. I keep A. The answer is A.",
         "Partial; Reasoning Error"),
        ("The picture shows A is 7, B is 3 and C is 2. I keep A. The answer is A.",
         "Partial; Image Misunderstanding"),
        ("The picture shows A is 7 and C is 2. I keep A. The answer is A.",
         "Partial; Image Misunderstanding"),
        ("I keep A (7) and C (2). Answer: A and C", "Wrong; Reasoning Error"),
        ("I keep A (7), B (6) and C (8). Answer: A, B and C", "Wrong; Image Misunderstanding"),
        ("I keep A (9) and C (2). Answer: A and C", ""),
        ("B", "Partial; Other"),
        ("(C)", "Wrong; Other"),
        ("A and B", "Correct"),
        ("A is 7 and B is 6. There is not enough information.", "Wrong; Unanswerable"),
        ("Only B can be confirmed; the rest are missing.", "Partial; Unanswerable"),
        ("A is 7 and B is 6. Wait, let me look at", "Wrong; Overthinking"),
        ("So far I have A. Now for the", "Partial; Overthinking"),
    ],
)  # fmt: skip
def test_reads_sets(response: str, label: str) -> None:
    row = {
        **{"question": "For which bars is the value above 5?", "references": ("A", "B")},
        **{"response": response, "label": "?"},
        "metadata": {"readings": {"value": {"A": 7, "B": 6, "C": 2}}},
    }
    assert audit_chart(LabelledExample.model_validate(row)).label == label
