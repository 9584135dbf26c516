"""A recipe that cannot work is refused before a backbone is loaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging.types import LabelledExample
from tests.train.made_up import critique_pair, examples, write_split
from train import bradley_terry, hieval_stage1, hieval_stage2, truthful_judge

Refusal = Callable[[Any, list[str]], str]


def _keys(folder: Path, rows: list[LabelledExample], val: list[LabelledExample]) -> list[str]:
    """Write rows of train and val; return the keys that train on them and nothing else."""
    files = {"train": rows, "val": val}
    data = {name: write_split(folder / f"{name}.jsonl", part) for name, part in files.items()}
    return [f"data={json.dumps(data)}", f"run.output={folder / 'run'}", "adapter.init=null"]


@pytest.fixture
def nothing_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.run.load_backbone", pytest.fail)


@pytest.mark.usefixtures("nothing_loads")
def test_splits_that_overlap(tmp_path: Path, refusal: Refusal) -> None:
    line = refusal(hieval_stage1, _keys(tmp_path, examples(12), examples(6)))
    assert "data.allow_overlap=true" in line


@pytest.mark.usefixtures("nothing_loads")
def test_a_run_folder_of_another_run(tmp_path: Path, refusal: Refusal) -> None:
    checkpoint = tmp_path / "run" / "checkpoint-000002"
    checkpoint.mkdir(parents=True)
    state = {"step": 2, "identity": {"optim.lr": 1, "backbone_version": "v1"}}
    (checkpoint / "state.json").write_text(json.dumps(state))
    keys = _keys(tmp_path, examples(12), examples(6, 100))
    line = refusal(hieval_stage1, [*keys, "data.allow_overlap=true"])
    assert f"{tmp_path / 'run'}: holds another run (of other optim.lr, " in line
    assert "backbone_version" not in line


@pytest.mark.usefixtures("nothing_loads")
def test_a_reward_of_single_responses(tmp_path: Path, refusal: Refusal) -> None:
    val = [critique_pair(number) for number in range(100, 106)]
    keys = [*_keys(tmp_path, examples(12), val), "data.allow_overlap=true"]
    assert "row '0': field 'responses'" in refusal(bradley_terry, keys)


@pytest.mark.parametrize(
    "script",
    [hieval_stage1, hieval_stage2, truthful_judge, bradley_terry],
    ids=lambda s: s.__name__,
)
def test_a_missing_split_or_backbone_is_named_with_what_does_without(
    script: Any, tmp_path: Path, refusal: Refusal
) -> None:
    pairs = [critique_pair(number) for number in range(18)]
    keys = [*_keys(tmp_path, pairs[:12], pairs[12:]), "data.allow_overlap=true"]
    missing = tmp_path / "nothing"
    in_replay = ["replay={}"] if script is hieval_stage2 else []
    for key in (f"data.train=[{missing}]", f"backbone={missing}"):
        line = refusal(script, [*keys, *in_replay, key])
        assert str(missing) in line and "without it: custos prep" in line
        assert "accelerate launch -m train." in line
