"""The report of an audit, and that no audit knows a generator."""

import ast
import sys
from pathlib import Path

import pytest

from judging.types import LabelledExample
from tests.oracles.report import disagreements
from tests.oracles.text import audit_text

AUDITS = ("text.py", "charts.py", "pairs.py", "report.py")


@pytest.mark.parametrize("audit", AUDITS)
def test_an_audit_imports_only_the_standard_library_the_record_types_and_audits(audit: str) -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(__file__).with_name(audit).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    assert "judging.types" in names
    for name in names - {"judging.types"}:
        is_audit = name.startswith("tests.oracles.")
        assert is_audit or name.partition(".")[0] in sys.stdlib_module_names, name


def test_disagreements_name_row_and_reason() -> None:
    row = LabelledExample(
        id="x7", question="Which?", references=("2", "4"), responses=("2 and 5",), label="Partial"
    )
    found = disagreements([row.model_copy(update={"label": "Wrong"}), row], audit_text)
    assert found == {1: "Partial, read as Wrong: ['5'] outside ['2', '4']"}
