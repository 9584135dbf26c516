"""A recipe that cannot work is refused before a backbone is loaded."""

import json
from pathlib import Path
from typing import Any

import pytest

from judging.types import LabelledExample
from tests.train.made_up import analysed, critique_pair, examples, write_split
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


@pytest.mark.parametrize("script", ["bradley_terry"], indirect=True)
def test_a_reward_of_single_responses(
    script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _error(script, tmp_path, capsys, train=examples(12))
    assert "row '0': field 'responses': a reward is trained on pairs: give two" in line


STARTED = (truthful_judge, bradley_terry, hieval_stage1, hieval_stage2)


def _missing(script: object, argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        script.main(argv)  # type: ignore[attr-defined]
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize("script", STARTED)
def test_a_missing_split_is_named(
    script: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.jsonl"
    line = _missing(script, [f"data.train=[{missing}]"], capsys)
    assert line.startswith(f"error: {missing}: no such split; make it with 'custos prep', or ")
    assert "as the comment at the top of the recipe says; without it: " in line
    assert "accelerate launch -m train." in line.splitlines()[-1]


@pytest.mark.parametrize("script", STARTED)
def test_a_missing_backbone_is_named(
    script: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [critique_pair(number) for number in range(4)]
    rows = pairs if script is bradley_terry else examples(4)
    split = write_split(tmp_path / "rows.jsonl", rows)
    given = [f"data.train=[{split}]", f"data.val={split}", "data.cal=null", "data.test=null"]
    given.append("data.allow_overlap=true")
    if script is hieval_stage2:
        given += ["adapter.init=null", "replay.train=[]", "replay.val=null"]
    line = _missing(script, [*given, f"backbone={tmp_path / 'nothing'}"], capsys)
    assert line.startswith(f"error: backbone '{tmp_path / 'nothing'}' cannot be loaded")
    assert "without it: custos prep" in line
