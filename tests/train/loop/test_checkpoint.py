"""Checkpoints appear whole or not at all, and only their own run reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from judging.errors import CustosError
from judging.fingerprint import file_sha256
from tests.train.made_up import examples, killed_after, recipe, write_recipe, write_split
from train import hieval_stage1
from train.launch.front import stop_message
from train.loop.checkpoint import (
    Progress,
    keep_best,
    read_checkpoint,
    run_identity,
    save_checkpoint,
)
from train.loop.trainer import Trainer


def load_checkpoint(folder: Path, model: Any, optimizer: Any, identity: Any) -> dict[str, Any]:
    """Restore the newest checkpoint; return its state."""
    saved = read_checkpoint(folder, model, identity)
    assert saved is not None
    saved.restore(model, optimizer)
    return saved.state


def learner(inputs: int = 3, *, bias: bool = True) -> tuple[torch.nn.Linear, torch.optim.AdamW]:
    model = torch.nn.Linear(inputs, 2, bias=bias)
    return model, torch.optim.AdamW(model.parameters())


def test_checkpoints_are_kept_whole_and_few(tmp_path: Path) -> None:
    model, optimizer = learner()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for step in (1, 2, 30):
        save_checkpoint(tmp_path, step, model, optimizer, {"best": {}}, {})
    (tmp_path / ".checkpoint-000031.partial").mkdir()  # as a kill would leave it
    kept = sorted(path.name for path in tmp_path.glob("checkpoint-*"))
    assert kept == ["checkpoint-000002", "checkpoint-000030"]
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pt", ".bin", ".pkl")]
    other, fresh = learner()
    assert load_checkpoint(tmp_path, other, fresh, {}) == {"step": 30, "best": {}}
    assert torch.equal(other.weight, model.weight)
    moments = fresh.state[other.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"]
    assert torch.equal(*moments)


def test_copies_of_the_user_are_left_alone(tmp_path: Path) -> None:
    model, optimizer = learner()
    copies = ("checkpoint-000002.bak", "checkpoint-old", "best-000001-copy")
    for name in copies:
        (tmp_path / name).mkdir()
    (tmp_path / "best-notes.txt").touch()
    for step in (999_998, 999_999, 1_000_000):
        save_checkpoint(tmp_path, step, model, optimizer, {}, {})
    keep_best(tmp_path, [1])
    assert {path.name for path in tmp_path.iterdir()} == {
        *(*copies, "best-notes.txt", "checkpoint-999999", "checkpoint-1000000")
    }
    assert load_checkpoint(tmp_path, model, optimizer, {}) == {"step": 1_000_000}
    assert stop_message(tmp_path, "again").startswith("stopped at step 1000000; ")


@pytest.mark.parametrize("other", [learner(bias=False), learner(4)])
def test_a_checkpoint_of_another_shape_is_refused(
    tmp_path: Path, other: tuple[torch.nn.Linear, torch.optim.AdamW]
) -> None:
    save_checkpoint(tmp_path, 1, *learner(), {}, {})
    with pytest.raises(CustosError, match="holds other parameters than this recipe trains"):
        load_checkpoint(tmp_path, *other, {})


def test_what_changes_nothing_is_left_out(tmp_path: Path) -> None:
    def identity(**overrides: Any) -> dict[str, Any]:
        return run_identity(recipe(tmp_path, **overrides), "v1", {"a": "1"})

    same: dict[str, Any] = {
        "run__output": "elsewhere",
        "run__log_every": 7,
        "run__save_every": 9,
        "run__eval_every": 7,
        "run__gradient_checkpointing": True,
        "run__patience": 3,
        "run__trackers": ["mlflow", "wandb"],
        "run__peak_tflops": 990.0,
        "optim__token_budget": 1,
    }
    assert identity(**same) == identity()
    assert json.loads(json.dumps(identity())) == identity(), "it survives a file"
    signed = recipe(tmp_path).model_copy(update={"provenance": {"packages": {}}})
    assert run_identity(signed, "v1", {"a": "1"}) == identity()
    for key, value in (("optim__lr", 1.0), ("run__seed", 1), ("optim__batch_size", 7)):
        assert identity(**{key: value}) != identity()
    assert identity(adapter__dora=True) != identity()
    assert identity(optim__optimizer="paged_adamw_8bit") != identity()
    # Checkpoints of versions without these keys are resumed.
    assert not {"adapter.dora", "adapter.merger", "optim.optimizer"} & identity().keys()
    for version, sha256 in (("v2", {"a": "1"}), ("v1", {"a": "2"}), ("v1", {"b": "1"})):
        assert run_identity(recipe(tmp_path), version, sha256) != identity()


def test_data_made_anew_is_other_data(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Any
) -> None:
    """Killed, resumed with other rows, then finished with its own; what was read is recorded."""
    path = write_recipe(tmp_path, small, run__save_every=1, data__cal=None, data__test=None)
    arguments = ["--config", str(path)]
    with killed_after(1):
        hieval_stage1.main(arguments)
    data = tmp_path / "train.jsonl"
    text, hashed = data.read_text(encoding="utf-8"), file_sha256(data)
    write_split(data, examples(24, 1000))
    assert f"holds another run (of other sha256.{data})" in refusal(hieval_stage1, arguments)
    data.write_text(text, encoding="utf-8")

    fit = Trainer.fit

    def change_and_fit(self: Trainer) -> Progress:
        write_split(data, examples(24, 2000))
        return fit(self)

    monkeypatch.setattr(Trainer, "fit", change_and_fit)
    hieval_stage1.main(arguments)
    resolved = yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text(encoding="utf-8"))
    assert resolved["provenance"]["sha256"][str(data)] == hashed
