"""A recipe that cannot work is refused before a backbone is loaded."""

import json
from collections.abc import Callable
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
every_script = pytest.mark.parametrize("script", SCRIPTS)
Refusal = Callable[[Any, list[str]], str]


def _rows(script: str, folder: Path, count: int, start: int = 0) -> list[LabelledExample]:
    if script == "hieval_stage1":
        return examples(count, start)
    if script == "hieval_stage2":
        return analysed(folder, count, start)
    return [critique_pair(number) for number in range(start, start + count)]


def _keys(script: str, folder: Path, **splits: list[LabelledExample]) -> list[str]:
    """Write rows of train and val; return the keys that train on them and nothing else."""
    rows = {"train": _rows(script, folder, 12), "val": _rows(script, folder, 6, 100)} | splits
    files = {name: write_split(folder / f"{name}.jsonl", part) for name, part in rows.items()}
    data = {**files, "train": [files["train"]], "allow_overlap": True}
    keys = [f"data={json.dumps(data)}", f"run.output={folder / 'run'}", "adapter.init=null"]
    return [*keys, *(["replay={}"] if script == "hieval_stage2" else [])]


@pytest.fixture
def nothing_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.run.load_backbone", pytest.fail)


@every_script
@pytest.mark.usefixtures("nothing_loads")
def test_splits_that_overlap(script: str, tmp_path: Path, refusal: Refusal) -> None:
    keys = _keys(script, tmp_path, val=_rows(script, tmp_path, 6))
    line = refusal(SCRIPTS[script], [*keys, "data.allow_overlap=false"])
    assert "or set data.allow_overlap=true" in line


@every_script
@pytest.mark.usefixtures("nothing_loads")
def test_a_run_folder_of_another_run(script: str, tmp_path: Path, refusal: Refusal) -> None:
    checkpoint = tmp_path / "run" / "checkpoint-000002"
    checkpoint.mkdir(parents=True)
    state = {"step": 2, "identity": {"optim.lr": 1, "backbone_version": "v1"}}
    (checkpoint / "state.json").write_text(json.dumps(state))
    line = refusal(SCRIPTS[script], _keys(script, tmp_path))
    assert f"{tmp_path / 'run'}: holds another run (of other optim.lr, " in line
    assert "backbone_version" not in line


@pytest.mark.usefixtures("nothing_loads")
def test_a_reward_of_single_responses(tmp_path: Path, refusal: Refusal) -> None:
    line = refusal(bradley_terry, _keys("bradley_terry", tmp_path, train=examples(12)))
    assert "row '0': field 'responses': a reward is trained on pairs: give two" in line


@every_script
def test_a_missing_split_is_named(script: str, tmp_path: Path, refusal: Refusal) -> None:
    missing = tmp_path / "none.jsonl"
    line = refusal(SCRIPTS[script], [f"data.train=[{missing}]"])
    assert line.startswith(f"error: {missing}: no such split; make it with 'custos prep', or ")
    assert "as the comment at the top of the recipe says; without it: " in line
    assert "accelerate launch -m train." in line


@every_script
def test_a_missing_backbone_is_named(script: str, tmp_path: Path, refusal: Refusal) -> None:
    missing = tmp_path / "nothing"
    line = refusal(SCRIPTS[script], [*_keys(script, tmp_path), f"backbone={missing}"])
    assert line.startswith(f"error: backbone '{missing}' cannot be loaded")
    assert "without it: custos prep" in line
