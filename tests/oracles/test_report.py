"""The report of an audit, and that no audit knows a generator."""

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from judging.types import LabelledExample
from tests.oracles.report import disagreements
from tests.oracles.text import audit_text

OWN = ("data_prep.", "judging.", "tests.oracles.")
AUDITS = ("tests.oracles.text", "tests.oracles.charts", "tests.oracles.pairs")
GENERATORS = ("data_prep.made.quick_scores", "data_prep.made.charts.rows", "data_prep.made.pairs")


def imports_of(module: str) -> set[str]:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return set()
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def reachable(module: str) -> set[str]:
    """Every module of this repository that a module imports, directly or not, and itself."""
    modules, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in modules:
            continue
        modules.add(name)
        waiting += [n for n in imports_of(name) if n.startswith(OWN)]
    return modules


@pytest.mark.parametrize("audit", AUDITS)
def test_an_audit_imports_only_the_standard_library_the_record_types_and_audits(audit: str) -> None:
    for name in imports_of(audit):
        top = name.split(".")[0]
        is_audit = name.startswith("tests.oracles.")
        assert is_audit or name == "judging.types" or top in sys.stdlib_module_names, name


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_audit_and_generator_share_no_code(audit: str, generator: str) -> None:
    audited, generated = reachable(audit), reachable(generator)
    assert "data_prep.made.words.wordings" in generated and "tests.oracles.report" in audited
    assert not {name for name in audited & generated if not name.startswith("judging")}
    assert not any(name.startswith("data_prep.made") for name in audited)


def test_disagreements_name_row_and_reason() -> None:
    row = LabelledExample(
        id="x7", question="Which?", references=("2", "4"), responses=("2 and 5",), label="Partial"
    )
    found = disagreements([row.model_copy(update={"label": "Wrong"}), row], audit_text)
    assert found == {1: "Partial, read as Wrong: ['5'] outside ['2', '4']"}
