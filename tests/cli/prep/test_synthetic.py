"""Examples whose labels are known, made from the command line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from data_prep.made.charts.responses import frames
from data_prep.made.charts.rows import plan_twins
from judging.errors import CustosError
from judging.files.questions import normalise_question
from tests.cli.prep.made_up import SPLITS, read, read_splits, run, write_rows
from tests.data_prep.examples import values_of
from train.rows.data import read_splits as read_trained_splits
from train.setup.recipe import DataSection

QUICK = {"Correct", "Partial", "Wrong"}
ANSWERED = {"0", "1", *QUICK, "Incorrect", "Not attempted"}
ONE_TASK = ("benchmark-answers", "--task", "simplevqa")


@pytest.mark.parametrize(
    ("command", "labels"),
    [
        (("synthetic",), QUICK),
        (("claims",), QUICK),
        (("omissions",), QUICK),
        (("yes-no",), QUICK - {"Partial"}),
        (("objective",), QUICK - {"Partial"}),
        (("benchmark-answers",), ANSWERED - {"Partial", "Wrong"}),
        (ONE_TASK, {"Correct", "Incorrect", "Not attempted"}),
    ],
)
def test_makers_divide_their_rows(
    tmp_path: Path, command: tuple[str, ...], labels: set[str]
) -> None:
    sizes = ("--val", 40, "--cal", 40, "--test", 80)
    result = run(*command, "--rows", 480, "--out", tmp_path, *sizes)
    splits = read_splits(tmp_path)
    assert len(splits["test"]) == 80 and 40 <= len(splits["val"]) < 60
    left_out = re.search(r"left out: (\d+)", result.stdout)
    assert sum(map(len, splits.values())) == 480 - (int(left_out[1]) if left_out else 0)
    assert {row.label for row in splits["train"]} == labels
    tasks = {frozenset(row.task for row in rows) for rows in splits.values()}
    assert len(tasks) == 1, "every split has rows of every task"


def test_criterion(tmp_path: Path) -> None:
    sizes = ("--val", 40, "--cal", 60, "--test", 100)
    run("criterion", "--rows", 800, "--out", tmp_path / "seen", *sizes)
    splits = read_splits(tmp_path / "seen")
    assert len(splits["test"]) == 100 and len(splits["val"]) >= 40 <= 60 <= len(splits["cal"])
    asked = {name: {normalise_question(row.asked) for row in splits[name]} for name in splits}
    assert asked["train"] and not asked["train"] & (asked["val"] | asked["cal"] | asked["test"])
    run("criterion", "--rows", 80, "--kinds", "unseen", "--out", tmp_path / "unseen")
    unseen = read_splits(tmp_path / "unseen")
    assert {name: len(rows) for name, rows in unseen.items() if rows} == {"test": 80}
    kinds = [
        {row.metadata["domain"] for rows in each.values() for row in rows}
        for each in (splits, unseen)
    ]
    assert not kinds[0] & kinds[1]


def rows(number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": str(i),
            "question": f"Who lives in house {i}?",
            "references": [f"Anna Name{i}", f"Name{i}"],
            "reference_mode": "any",
            "response": f"Bert Other{i}",
            "label": "Wrong",
            "group": f"house-{i}",
        }
        for i in range(number)
    ]


def test_a_file_is_split_by_question(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.jsonl", rows(100))
    result = run("hard", "--source", source, "--out", tmp_path / "out", "--per-question", 2)
    assert "forged_fields" in result.stdout
    assert all(read_splits(tmp_path / "out").values())


def test_a_folder_keeps_its_splits(tmp_path: Path) -> None:
    made = rows(60)
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "train.jsonl", made[:40])
    write_rows(tmp_path / "in" / "val.jsonl", made[40:])
    run("hard", "--source", tmp_path / "in", "--out", tmp_path / "out", "--kind", "denial")
    splits = {split: read(tmp_path / "out", split) for split in SPLITS}
    asked = {row["question"] for row in made[:40]}
    assert {row.question for row in splits["train"]} == asked
    assert splits["val"]
    assert not {row.question for row in splits["val"]} & asked
    assert not splits["cal"]
    assert not splits["test"]
    for row in splits["train"] + splits["val"]:
        assert (row.metadata["kind"], row.source) == ("denial", "hard")
        assert row.group.startswith("house-")


HELD_OUT = {frame.id for frame in frames() if frame.held_out}


def test_splits_share_no_picture_and_held_out_wordings_are_for_the_test(tmp_path: Path) -> None:
    sizes = ("--rows", 20, "--val", 4, "--cal", 4, "--test", 8)
    result = run("charts", "--out", tmp_path, "--seed", 2, *sizes)
    splits = {name: read(tmp_path, name) for name in SPLITS}
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 4, "val": 4, "cal": 4, "test": 8,
    }  # fmt: skip
    for values in (lambda row: {row.group}, lambda row: set(row.images)):
        everything = [set().union(*map(values, rows)) for rows in splits.values()]
        assert sum(map(len, everything)) == len(set().union(*everything))
    assert values_of(splits["test"], "form") <= HELD_OUT
    assert not any(values_of(splits[name], "form") & HELD_OUT for name in ("train", "val", "cal"))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sum(manifest["counts"]["test.jsonl"].values()) == 8
    assert "20 examples" in result.stdout


def test_captions_describe_the_pictures_of_the_same_rows(tmp_path: Path) -> None:
    sizes = ("--rows", 20, "--val", 0, "--cal", 0, "--test", 4)
    pictures, captions = tmp_path / "pictures", tmp_path / "captions"
    for folder, options in ((pictures, ()), (captions, ("--captions",))):
        run("charts", "--out", folder, *sizes, *options)
        run("twins", "--out", folder / "twins", "--rows", 4, *options)
    for name in ("train", "test", "twins/twins"):
        for row, captioned in zip(read(pictures, name), read(captions, name), strict=True):
            assert captioned.question == f"Picture: {row.metadata['caption']}. {row.question}"
            assert not captioned.images
            same = {"question": row.question, "images": row.images}
            assert captioned.model_copy(update=same) == row
    assert not (captions / "images").exists()
    assert json.loads((captions / "manifest.json").read_text())["images"] == 0


def test_twins_of_two_kinds_are_those_among_all_twins(tmp_path: Path) -> None:
    kinds = ("--kind", "bar", "--kind", "spectrum")
    run("twins", "--out", tmp_path, "--rows", 10, "--captions", *kinds)
    ids = [row.id for row in read(tmp_path, "twins")]
    everything = [row.example for row in plan_twins(150, 0, "test")]
    assert ids == [row.id for row in everything if row.metadata["kind"] in kinds][:10]
    with pytest.raises(CustosError, match="--kind 'barr': expected one of bar"):
        run("twins", "--out", tmp_path, "--rows", 2, "--kind", "barr")


def custos(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_a_deceived_reader_is_wrong_on_every_manipulated_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are graded without the pictures, which take long to draw."""
    monkeypatch.setattr("data_prep.made.misleading_drawing.render", lambda *_: b"")
    out = tmp_path / "pairs"
    assert "14 pairs, 28 charts" in custos("prep", "chartom", "--out", out, "--pairs", 14)
    rows = [json.loads(line) for line in (out / "items.jsonl").open()]
    for row in rows:
        said = row["strategies"].get("misled", row["answer"])
        row["fact_response"] = ", ".join(said) if isinstance(said, list) else f"Answer: {said}"
        row["mind_response"] = "0.5"
        row["manipulation"] = ""  # or the reasons would need a judge
    responses, graded = tmp_path / "responses.json", tmp_path / "graded.json"
    responses.write_text(json.dumps(rows))
    custos("bench", "grade", "chartom", "--responses", responses, "--out", graded)
    custos("bench", "table", "chartom", "--graded", graded, "--json", tmp_path / "table.json")
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["overall"]["fact_accuracy"] == 0.5
    errors = [(row["hmi"] - 0.5) ** 2 for row in rows]
    assert table["overall"]["mind_mse"] == pytest.approx(sum(errors) / len(rows))


def test_writes_what_training_reads(tmp_path: Path) -> None:
    run("pairs", "--rows", 120, "--pictures", 0, "--seed", 4, "--out", tmp_path)
    one_order = ("--no-both-orders", "--out", tmp_path / "one")
    run("pairs", "--rows", 120, "--pictures", 0, "--seed", 4, *one_order)
    assert len(read(tmp_path, "train")) == 2 * len(read(tmp_path / "one", "train"))
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
        splits = read_trained_splits(data)
        assert splits.train and splits.val
        rows = [*splits.train, *splits.val, *(splits.cal or ()), *(splits.test or ())]
        assert {row.mode for row in rows} == {"critique"}


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.jsonl", rows(20))
    with pytest.raises(CustosError, match="--kind 'denials': expected one of denial, "):
        run("hard", "--source", source, "--out", tmp_path / "out", "--kind", "denials")
    with pytest.raises(CustosError, match="holds no train.jsonl"):
        run("hard", "--source", tmp_path, "--out", tmp_path / "out")
    with pytest.raises(CustosError, match="no such file"):
        run("hard", "--source", tmp_path / "rows.json", "--out", tmp_path / "out")
    yes_no = [{**row, "references": ["yes"]} for row in rows(20)]
    source = write_rows(tmp_path / "yes.jsonl", yes_no)
    with pytest.raises(CustosError, match="no question to make hard responses to"):
        run("hard", "--source", source, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
