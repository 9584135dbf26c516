from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from cli.main import app
from train.rows.data import read_splits
from train.setup.recipe import DataSection


def _prep(out: Path, *more: str) -> str:
    command = ["prep", "pairs", "--out", str(out), "--rows", "120", "--pictures", "0", *more]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return done.output


def test_writes_what_training_reads(tmp_path: Path) -> None:
    shown = _prep(tmp_path, "--seed", "4")
    assert "groups of questions" in shown
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["source"] == {
        "name": "pairs", "rows": 120, "seed": 4, "pictures": 0.0, "rows_are": "pairs"
    }  # fmt: skip
    for folder in (tmp_path, tmp_path / "scores"):
        data = DataSection(
            train=(folder / "train.jsonl",),
            val=folder / "val.jsonl",
            cal=folder / "cal.jsonl",
            test=folder / "test.jsonl",
        )
        splits = read_splits(data)
        assert splits.train and splits.val
        rows = [*splits.train, *splits.val, *(splits.cal or ()), *(splits.test or ())]
        assert {row.mode for row in rows} == {"critique"}


def test_equal_input_gives_equal_bytes_and_one_order_halves_training(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _prep(tmp_path / name)
    for path in (tmp_path / "a").rglob("*.jsonl"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    _prep(tmp_path / "c", "--no-both-orders")
    lines = [len((tmp_path / n / "train.jsonl").read_text().splitlines()) for n in ("a", "c")]
    assert lines[0] == 2 * lines[1]
