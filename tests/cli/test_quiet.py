"""Grading writes its progress and its summary, and no notices of the libraries it uses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CUSTOS = "from cli.main import app; app()"
ROWS = (("Paris", "The capital is Paris."), ("Paris", "I think it is Rome."))


@pytest.mark.usefixtures("embedded")
def test_grading_writes_no_notices(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    lines = [
        json.dumps({"question": "What is the capital of France?", "reference_mode": "any"} | row)
        for row in ({"references": [right], "response": response} for right, response in ROWS)
    ]
    source.write_text("\n".join(lines), encoding="utf-8")
    files = ["--in", str(source), "--out", str(tmp_path / "out.jsonl")]
    done = subprocess.run(
        [sys.executable, "-c", CUSTOS, "grade", "--judge", "embedded-qs", *files],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("2 rows graded")
    ours = ("grading ", "rows for people: ")
    assert [line for line in done.stderr.splitlines() if not line.startswith(ours)] == []
