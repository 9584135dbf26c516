"""``custos prep charts`` and ``custos prep twins``."""

import json
from pathlib import Path

from typer.testing import CliRunner

from cli.main import app
from data_prep.splits.splits import SPLITS
from data_prep.synthetic.charts.generate import plan_twins
from data_prep.synthetic.charts.wordings import FRAMES
from judging.records import read_records
from judging.types import LabelledExample
from tests.data_prep.examples import values_of

HELD_OUT = {frame.id for frame in FRAMES if frame.held_out}


def run_custos(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def read(path: Path) -> list[LabelledExample]:
    return [row for _, row in read_records(path, LabelledExample)]


def test_charts_verb_splits_by_picture_and_keeps_wordings_for_the_test(tmp_path: Path) -> None:
    sizes = ("--rows", 40, "--val", 4, "--cal", 8, "--test", 12)
    printed = run_custos("prep", "charts", "--out", tmp_path, "--seed", 2, *sizes)
    splits = {name: read(tmp_path / f"{name}.jsonl") for name in SPLITS}
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 16, "val": 4, "cal": 8, "test": 12,
    }  # fmt: skip
    for values in (lambda row: {row.group}, lambda row: set(row.images)):
        everything = [set().union(*map(values, rows)) for rows in splits.values()]
        assert sum(map(len, everything)) == len(set().union(*everything))
    assert values_of(splits["test"], "form") <= HELD_OUT
    assert not any(values_of(splits[name], "form") & HELD_OUT for name in ("train", "val", "cal"))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sum(manifest["counts"]["test.jsonl"].values()) == 12
    assert "40 examples" in printed


def test_twins_verb(tmp_path: Path) -> None:
    run_custos("prep", "twins", "--out", tmp_path, "--rows", 6)
    rows = read(tmp_path / "twins.jsonl")
    assert values_of(rows, "form") <= HELD_OUT
    assert len({row.group for row in rows}) == 3
    assert json.loads((tmp_path / "manifest.json").read_text())["twins"] == 3


def test_twins_of_some_kinds_are_those_among_all_twins(tmp_path: Path) -> None:
    kinds = ("--kind", "bar", "--kind", "spectrum")
    run_custos("prep", "twins", "--out", tmp_path, "--rows", 10, "--captions", *kinds)
    ids = [row.id for row in read(tmp_path / "twins.jsonl")]
    everything = [row.example for row in plan_twins(400, 0, "test")]
    assert ids == [row.id for row in everything if row.metadata["kind"] in kinds][:10]
    unknown = ["prep", "twins", "--out", str(tmp_path), "--rows", "2", "--kind", "barr"]
    assert "--kind 'barr': expected one of bar" in CliRunner().invoke(app, unknown).stderr


def test_captions_describe_the_pictures_of_the_same_rows(tmp_path: Path) -> None:
    sizes = ("--rows", 20, "--val", 0, "--cal", 0, "--test", 4)
    for folder, options in (("pictures", ()), ("captions", ("--captions",))):
        run_custos("prep", "charts", "--out", tmp_path / folder, *sizes, *options)
        twins = tmp_path / folder / "twins"
        run_custos("prep", "twins", "--out", twins, "--rows", 4, *options)
    for name in ("train.jsonl", "test.jsonl", "twins/twins.jsonl"):
        with_picture, with_caption = (
            read(tmp_path / folder / name) for folder in ("pictures", "captions")
        )
        for row, captioned in zip(with_picture, with_caption, strict=True):
            assert captioned.question == f"Picture: {row.metadata['caption']}. {row.question}"
            assert not captioned.images
            same = {"question": row.question, "images": row.images}
            assert captioned.model_copy(update=same) == row
    assert not (tmp_path / "captions" / "images").exists()
    assert json.loads((tmp_path / "captions" / "manifest.json").read_text())["images"] == 0
