"""Checkpoints with random weights: laid out as on the hub, made once, named in every verdict."""

import shutil
from pathlib import Path

import pytest
from safetensors import safe_open

from judging.judge import Judge
from judging.judge.card import CARD_FILE, JudgeCard
from judging.models.backbones import load_backbone
from tests.conftest import HubFolders
from tests.hub import LAYOUTS
from tests.judging.made_up import ask
from tests.train.made_up import write_recipe
from train import hieval_stage1
from train.launch import rehearsal as writer
from train.launch.rehearsal import random_checkpoint


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "random-weights"


def stored(folder: str | Path) -> dict[str, list[int]]:
    """Names and shapes of all stored weights."""
    shapes: dict[str, list[int]] = {}
    for file in Path(folder).glob("*.safetensors"):
        with safe_open(file, "pt") as weights:
            shapes |= {name: weights.get_slice(name).get_shape() for name in weights.keys()}
    return shapes


@pytest.mark.parametrize("name", LAYOUTS)
def test_names_and_shapes_are_those_of_the_hub(
    name: str, hub_folders: HubFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SHARD", "60KB")
    folder = random_checkpoint(hub_folders(name))
    assert stored(folder) == stored(hub_folders(name))
    assert len(list(folder.glob("*.safetensors"))) > 1
    backbone = load_backbone(str(folder), device="cpu")
    assert backbone.has_random_weights and not load_backbone(hub_folders(name)).has_random_weights
    assert backbone.context == load_backbone(hub_folders(name), weights=False).context


def test_a_checkpoint_is_made_once_and_whole(
    small: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "leftover.partial").mkdir(parents=True)
    folder = random_checkpoint(small)
    made = (folder / "config.json").stat().st_mtime_ns
    assert random_checkpoint(small) == folder
    assert (folder / "config.json").stat().st_mtime_ns == made
    shutil.rmtree(folder)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transformers.PreTrainedModel.save_pretrained", full)
    with pytest.raises(OSError, match="No space left"):
        random_checkpoint(small)
    assert not folder.exists() and not list(cache.glob(f"{folder.name}.partial"))


def test_a_judge_on_random_weights_says_so(small: str, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, small)
    hieval_stage1.main(["--config", str(recipe), "--random-weights", "data.test=null"])
    run = tmp_path / "run"
    assert JudgeCard.model_validate_json((run / CARD_FILE).read_bytes()).random_weights
    assert "it knows nothing" in (run / "README.md").read_text(encoding="utf-8")
    [verdict] = Judge.load(str(run)).grade([ask()])
    assert verdict.message and "weights of this judge are random" in verdict.message
