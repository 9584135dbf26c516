"""Twins from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_prep.made.charts.responses import frames
from data_prep.made.charts.rows import plan_twins
from judging.errors import CustosError
from tests.cli.prep.made_up import read, run
from tests.data_prep.examples import values_of


def test_twins_have_held_out_wordings(tmp_path: Path) -> None:
    run("twins", "--out", tmp_path, "--rows", 6)
    rows = read(tmp_path, "twins")
    assert values_of(rows, "form") <= {frame.id for frame in frames() if frame.held_out}
    assert len({row.group for row in rows}) == 3
    assert json.loads((tmp_path / "manifest.json").read_text())["twins"] == 3


def test_twins_of_two_kinds_are_those_among_all_twins(tmp_path: Path) -> None:
    kinds = ("--kind", "bar", "--kind", "spectrum")
    run("twins", "--out", tmp_path, "--rows", 10, "--captions", *kinds)
    ids = [row.id for row in read(tmp_path, "twins")]
    everything = [row.example for row in plan_twins(400, 0, "test")]
    assert ids == [row.id for row in everything if row.metadata["kind"] in kinds][:10]
    with pytest.raises(CustosError, match="--kind 'barr': expected one of bar"):
        run("twins", "--out", tmp_path, "--rows", 2, "--kind", "barr")
