"""Rows of our own shape, filtered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judging import CustosError
from tests.cli.prep.made_up import SPLITS, own_rows, read, run, write_rows


def test_generic_with_both_filters(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", own_rows(40))
    verdicts = tmp_path / "verdicts.json"
    # Each of two models finds everything Correct: the ten Wrong examples are contested, and two of
    # these (0 and 20) have one-word responses.
    verdicts.write_text(json.dumps({str(i): ["Correct", "Correct"] for i in range(40)}))
    run(
        *("generic", "--source", source, "--out", tmp_path / "out", "--min-words", 3),
        *("--verdicts", verdicts, "--disagreeing", 2, "--models", 2),
    )
    kept = {e.id for split in SPLITS for e in read(tmp_path / "out", split)}
    assert kept == {"4", "8", "12", "16", "24", "28", "32", "36"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == {"bad_rows": 0, "filtered": 32}


def test_unreadable_verdicts(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", own_rows(4))
    with pytest.raises(CustosError, match="verdicts.json: cannot read the verdicts"):
        run(
            "generic",
            "--source",
            source,
            "--out",
            tmp_path,
            "--verdicts",
            tmp_path / "verdicts.json",
        )


def test_many_bad_rows_are_summed_up(tmp_path: Path) -> None:
    rows = [*own_rows(20), *({"question": "no label"} for _ in range(25))]
    source = write_rows(tmp_path / "own.jsonl", rows)
    result = run("generic", "--source", source, "--out", tmp_path / "out")
    lines = result.stderr.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "skipped: 15 more bad rows"
