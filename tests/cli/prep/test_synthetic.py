"""Examples whose labels are known, made from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from data_prep.made.charts.responses import frames
from data_prep.made.charts.rows import plan_twins
from judging.errors import CustosError
from judging.files.questions import normalise_question
from judging.types import LabelledExample
from tests.cli.prep.made_up import SPLITS, read, read_splits, run, write_rows
from tests.data_prep.examples import values_of
from train.rows.data import read_splits as read_trained_splits
from train.setup.recipe import DataSection


def test_synthetic_tests_on_held_out_wordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def generate_examples(
        num_rows: int, seed: int, wordings: str, worlds: str
    ) -> Iterator[LabelledExample]:
        calls.append((num_rows, seed, wordings))
        for i in range(num_rows):
            yield LabelledExample(
                id=f"{wordings}-{i}",
                question=f"{wordings} question {i}",
                responses=("thing",),
                label="Correct",
                group="shared" if i == 0 else f"{wordings} {i}",
            )

    monkeypatch.setattr("cli.prep.synthetic.generate_examples", generate_examples)
    result = run("synthetic", "--out", tmp_path, "--rows", 100, "--seed", 5, "--test", 0.2)
    assert sorted(calls) == [(20, 5, "test"), (80, 5, "train")]
    for split in SPLITS:
        origins = {e.id.split("-")[0] for e in read(tmp_path, split)}
        assert origins == {"test" if split == "test" else "train"}
    assert len(read(tmp_path, "test")) == 20
    assert sum(len(read(tmp_path, split)) for split in SPLITS) == 99, "one shares a group with test"
    assert "left out: 1 near duplicates of test" in result.stdout


def test_claims(tmp_path: Path) -> None:
    run("claims", "--rows", 400, "--out", tmp_path, "--val", 40, "--cal", 40, "--test", 60)
    splits = read_splits(tmp_path)
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 260, "val": 40, "cal": 40, "test": 60,
    }  # fmt: skip
    assert {row.label for row in splits["train"]} == {"Correct", "Partial", "Wrong"}


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


def test_objective(tmp_path: Path) -> None:
    run("objective", "--rows", 600, "--out", tmp_path, "--val", 40, "--cal", 60, "--test", 100)
    splits = read_splits(tmp_path)
    assert len(splits["test"]) == 100
    assert 300 <= len(splits["train"]) <= 400  # less the questions of test
    assert {row.label for row in splits["train"]} == {"Correct", "Wrong"}


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
    sizes = ("--rows", 40, "--val", 4, "--cal", 8, "--test", 12)
    result = run("charts", "--out", tmp_path, "--seed", 2, *sizes)
    splits = {name: read(tmp_path, name) for name in SPLITS}
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
    assert "40 examples" in result.stdout


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


def test_a_deceived_reader_is_wrong_on_every_manipulated_chart(tmp_path: Path) -> None:
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
        splits = read_trained_splits(data)
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


def test_splits_share_no_question_and_hold_every_task(tmp_path: Path) -> None:
    sizes = ("--val", 40, "--cal", 40, "--test", 80)
    run("benchmark-answers", "--rows", 480, "--out", tmp_path, *sizes)
    splits = read_splits(tmp_path)
    assert len(splits["test"]) == 80
    assert sum(map(len, splits.values())) == 480
    for rows in splits.values():
        assert {row.task for row in rows} == {"charthal", "simplevqa", "chartom-fact"}


def test_one_task(tmp_path: Path) -> None:
    run("benchmark-answers", "--rows", 60, "--task", "simplevqa", "--out", tmp_path)
    assert {row.task for split in SPLITS for row in read(tmp_path, split)} == {"simplevqa"}


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
