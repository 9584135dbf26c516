"""A recipe that cannot work is refused before a backbone is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judging.types import LabelledExample
from tests.train.made_up import analysed, critique_pair, example, examples, write_split
from train import bradley_terry, hieval_stage1, hieval_stage2, truthful_judge

SCRIPTS: dict[str, Any] = {
    "hieval_stage1": hieval_stage1,
    "hieval_stage2": hieval_stage2,
    "truthful_judge": truthful_judge,
    "bradley_terry": bradley_terry,
}


def _rows(script: str, folder: Path, count: int, start: int = 0) -> list[LabelledExample]:
    if script == "hieval_stage1":
        return examples(count, start)
    if script == "hieval_stage2":
        return analysed(folder, count, start)
    return [critique_pair(number) for number in range(start, start + count)]


@pytest.fixture(params=SCRIPTS)
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A script whose backbone must not be loaded."""
    name: str = request.param
    monkeypatch.setattr("train.run.load_backbone", pytest.fail)
    return name


def _error(
    script: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *keys: str,
    **splits: list[LabelledExample],
) -> str:
    rows = {"train": _rows(script, folder, 12), "val": _rows(script, folder, 6, 100)} | splits
    files = {name: write_split(folder / f"{name}.jsonl", part) for name, part in rows.items()}
    given = {"train": [files["train"]], "val": files["val"], "allow_overlap": True}
    given["cal" if "cal" in files else "limit"] = files.get("cal")
    overrides = [f"data={json.dumps(given)}", f"run.output={folder / 'run'}", "adapter.init=null"]
    if script == "hieval_stage2":
        overrides += ["replay.train=[]", "replay.val=null"]
    with pytest.raises(SystemExit) as ended:
        SCRIPTS[script].main([*overrides, *keys])
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith("error: ")
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_missing_picture(
    script: str, split: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = _rows(script, tmp_path, 12)
    rows[7] = rows[7].model_copy(update={"images": ("/none.png",)})
    line = _error(script, tmp_path, capsys, **{split: rows})
    assert f"{split}.jsonl row 8: field 'images': '/none.png' is not a readable picture" in line


def test_a_label_that_the_task_does_not_have(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = _rows(script, tmp_path, 12)
    rows[7] = rows[7].model_copy(update={"label": "Maybe", "error_type": None})
    assert "Maybe" in _error(script, tmp_path, capsys, train=rows)


def test_splits_that_overlap(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _error(
        script, tmp_path, capsys, "data.allow_overlap=false", val=_rows(script, tmp_path, 6)
    )
    assert "or set data.allow_overlap=true" in line


def test_a_run_folder_of_another_run(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "run" / "checkpoint-000002"
    checkpoint.mkdir(parents=True)
    state = {"step": 2, "identity": {"optim.lr": 1, "backbone_version": "v1"}}
    (checkpoint / "state.json").write_text(json.dumps(state))
    line = _error(script, tmp_path, capsys)
    assert f"{tmp_path / 'run'}: holds another run (of other optim.lr, " in line
    assert "backbone_version" not in line


def test_a_folder_of_other_files(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    for name in ("README.md", "log.txt", "x.lock"):
        (tmp_path / "run" / name).write_text("mine")
    line = _error(script, tmp_path, capsys)
    assert f"{tmp_path / 'run'}: the folder holds files that are not of a run (README.md)" in line


def test_a_run_folder_that_is_a_file(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").write_text("")
    line = _error(script, tmp_path, capsys)
    assert f"field 'run.output': {tmp_path / 'run'} is a file; choose a folder" in line


@pytest.mark.parametrize("script", ["hieval_stage1"], indirect=True)
def test_a_label_without_rows(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    only_right = [example(3 * number) for number in range(12)]
    line = _error(script, tmp_path, capsys, train=only_right)
    assert "field 'data.train': all rows are labelled 'Correct'" in line


@pytest.mark.parametrize("script", ["truthful_judge"], indirect=True)
def test_a_pair_without_a_critique(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*_rows(script, tmp_path, 6), critique_pair(9, critique=None)]
    line = _error(script, tmp_path, capsys, val=rows)
    assert "row '9': field 'critique': task 'truthful-pair' trains on one" in line


@pytest.mark.parametrize("script", ["bradley_terry"], indirect=True)
def test_a_reward_of_single_responses(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _error(script, tmp_path, capsys, train=examples(12))
    assert "row '0': field 'responses': a reward is trained on pairs: give two" in line
