from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest

from data_prep.audits.charts import audit_chart
from data_prep.audits.text import AuditReport, audit_rows
from data_prep.synthetic.charts import plan, plan_twins
from data_prep.synthetic.charts.questions import QUESTION_FORMS
from data_prep.synthetic.charts.responses import ERROR_TYPES
from data_prep.synthetic.charts.wordings import FORMS
from judging.types import LabelledExample

SCORES = ("Partial", "Wrong")


def test_audit_imports_no_generator() -> None:
    spec = find_spec("data_prep.audits.charts")
    assert spec is not None and spec.origin is not None
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert all(alias.name in sys.stdlib_module_names for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            allowed = module in ("judging.types", "data_prep.audits.text")
            assert allowed or module.split(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("forms", ["train", "test", "all"])
def test_clean_examples_pass(forms: Any) -> None:
    rows = [row.example for row in plan(2500, 11, forms)]
    report = audit_rows(rows, audit_chart)
    assert report.agreement >= 0.999, str(report)
    seen = {row.metadata["form"] for row in rows}
    assert seen == {f.id for f in FORMS if forms == "all" or f.held_out == (forms == "test")}
    if forms != "train":
        assert {row.metadata["question_form"] for row in rows} >= {
            form.id for form in QUESTION_FORMS if form.held_out
        }


def test_clean_twins_pass() -> None:
    report = audit_rows((row.example for row in plan_twins(1000, 12, "all")), audit_chart)
    assert report.agreement >= 0.999, str(report)


def test_planted_label_errors_are_caught() -> None:
    rng = Random(5)
    planted = [
        _with_wrong_label(rng, row.example)
        for deck in (plan(400, 13, "all"), plan_twins(100, 13, "all"))
        for row in deck
    ]
    report = audit_rows(planted, audit_chart)
    assert report.rows == 500
    assert len(report.disagreements) >= 495


def _with_wrong_label(rng: Random, row: LabelledExample) -> LabelledExample:
    """Swap the score or the type, or both."""
    labels = ["Correct", *(f"{score}; {name}" for score in SCORES for name in ERROR_TYPES)]
    wrong = rng.choice([label for label in labels if label != row.label])
    return row.model_copy(update={"label": wrong})


def test_planted_errors_in_data_and_references_are_caught() -> None:
    for row in (planned.example for planned in plan(200, 14, "all")):
        assert not audit_rows([row], audit_chart).disagreements
        other = row.model_copy(update={"references": (*row.references, "99")})
        assert audit_chart(other).label == ""


def test_audit_sees_neither_label_nor_how_the_row_was_made() -> None:
    for row in (planned.example for planned in plan(200, 15, "all")):
        readings = {"readings": row.metadata["readings"]}
        blind = row.model_copy(update={"label": "?", "error_type": None, "metadata": readings})
        assert audit_chart(blind) == audit_chart(row)


def test_no_rows_agree() -> None:
    assert audit_rows([], audit_chart) == AuditReport(0, ())


def _read(response: str, *references: str, question: str, **values: int) -> str:
    return audit_chart(
        LabelledExample.model_validate(
            {
                "question": question,
                "references": references,
                "response": response,
                "label": "?",
                "metadata": {"readings": {"value": values}},
            }
        )
    ).label


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ({"A": 5, "B": 7, "C": 3}, "Wrong; Reasoning Error"),
        ({"A": 2, "B": 7, "C": 5}, "Wrong; Image Misunderstanding"),
    ],
)
def test_reads_a_twin(values: dict[str, int], label: str) -> None:
    text = "The two largest are B at 7 and C at 3, so 7 + 3 = 10. The answer is 10."
    question = "What is the sum of the two largest values?"
    assert _read(text, "12", question=question, **values) == label


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
    question = "For which bars is the value above 5?"
    assert _read(response, "A", "B", question=question, A=7, B=6, C=2) == label


def test_doubts_references_that_do_not_follow() -> None:
    assert _read("4", "4", question="What is the value of A?", A=5, B=1, C=2) == ""
