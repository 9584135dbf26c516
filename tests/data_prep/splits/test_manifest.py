import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from data_prep.splits.manifest import load_generic, write_prepared
from data_prep.splits.splits import HeldOut, Splits
from judging.errors import CustosError
from judging.types import LabelledExample
from tests.data_prep.examples import example
from tests.data_prep.tables.made_up import parquet, save


def prepared() -> Splits:
    one: dict[str, Any] = {"metadata": {"answerer": "m1"}, "group": "g1"}
    return {
        "train": [
            example("Why is it so?", id="1", split="train", **one),
            example("why is it so", id="2", split="train", **one),
            example("Why is it not so?", "Wrong", id="3", split="train", **one),
        ],
        "test": [example("How?", id="4", group="g2", split="test")],
    }


def write(out: Path, splits: Splits | None = None) -> dict[str, Any]:
    return write_prepared(
        out,
        splits or prepared(),
        source={"name": "raw.json", "sha256": "00"},
        held_out=HeldOut(val=0, cal=0, test=1),
        seed=7,
        command="custos prep x",
        left_out={"bad_rows": 2},
    )


def test_the_manifest_tells_what_was_written(tmp_path: Path) -> None:
    returned = write(tmp_path / "new" / "folder")
    manifest = json.loads((tmp_path / "new" / "folder" / "manifest.json").read_text())
    assert manifest == returned
    for name, output in manifest.pop("outputs").items():
        content = (tmp_path / "new" / "folder" / name).read_bytes()
        assert output == {
            "rows": content.count(b"\n"),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    assert manifest == {
        "source": {"name": "raw.json", "sha256": "00"},
        "counts": {
            "train": {"Correct": {"m1": 2}, "Wrong": {"m1": 1}},
            "val": {},
            "cal": {},
            "test": {"Correct": {"": 1}},
        },
        "groups": 2,
        "near_duplicate_clusters": 1,
        "left_out": {"bad_rows": 2},
        "seed": 7,
        "held_out": {"val": 0.0, "cal": 0.0, "test": 1.0},
        "version": version("custos"),
        "command": "custos prep x",
    }


def test_a_failed_run_leaves_whole_files_and_no_manifest(tmp_path: Path) -> None:
    write(tmp_path)
    before = (tmp_path / "val.jsonl").read_bytes()

    class Unreadable(list[LabelledExample]):
        def __iter__(self) -> Any:
            yield example("Half?")
            raise CustosError("the disk is gone")

    with pytest.raises(CustosError, match="the disk is gone"):
        write(tmp_path, {**prepared(), "val": Unreadable()})
    assert (tmp_path / "val.jsonl").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".manifest.json.begun",
        "cal.jsonl",
        "test.jsonl",
        "train.jsonl",
        "val.jsonl",
    ]
    assert write(tmp_path)["seed"] == 7, "what was begun may be replaced"


@pytest.mark.parametrize("manifest", ["", "[]", '{"name": "My extension", "version": "1"}'])
def test_the_manifest_of_another_program_is_no_proof(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    (tmp_path / "val.jsonl").write_text("mine")
    with pytest.raises(CustosError, match=r"would be replaced \(val.jsonl, manifest.json\)"):
        write(tmp_path)
    assert (tmp_path / "manifest.json").read_text() == manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "val.jsonl"]


ROWS: list[dict[str, Any]] = [
    {"id": "a", "task": "t", "question": "Q?", "response": "R", "label": "x", "source": "mine"},
    {"question": "Q?", "responses": ["R", "S"], "label": "y", "images": ["i/1.png"]},
]


def test_rows_in_our_shape(tmp_path: Path) -> None:
    path = save(tmp_path / "rows.json", json.dumps(ROWS))
    first, second = load_generic(path)
    assert (first.id, first.task, first.responses, first.source) == ("a", "t", ("R",), "mine")
    assert (second.id, second.responses, second.source) == ("rows-2", ("R", "S"), "rows")
    assert second.images == (str(tmp_path / "i" / "1.png"),)
    (loaded,) = load_generic(parquet(tmp_path / "rows.parquet", ROWS[0]))
    assert (loaded.id, loaded.label) == ("a", "x")
