"""What is said of a table before it is divided."""

from __future__ import annotations

from typing import Any

import pytest

from data_prep.tables.examples import show_doubles
from judging.types import LabelledExample

ROW = {"question": "Which?", "references": ["x", "y"], "response": "x", "label": "Partial"}


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["1 rows repeat an earlier one"]),
        (
            {"label": "Wrong"},
            ["1 rows repeat an earlier one", "1 equal rows have different labels"],
        ),
        ({"reference_mode": "any", "label": "Correct"}, []),
        ({"variant": "tolerance", "label": "Correct"}, []),
        ({"choices": ["x", "z"], "label": "Correct"}, []),
    ],
)
def test_rows_that_are_judged_alike_are_doubles(changes: dict[str, Any], lines: list[str]) -> None:
    rows = [LabelledExample.model_validate(row) for row in (ROW, {**ROW, **changes})]
    assert show_doubles(rows) == lines
