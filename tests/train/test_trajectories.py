"""Every stage's loss, step by step, on a tiny backbone against committed values.

After an intended change of the numbers, print the table again:
``python -m tests.train.test_trajectories``.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from judging.fingerprint import file_sha256
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.types import LabelledExample
from tests.tiny import Family, save_tiny
from tests.train.made_up import analysed, examples, write_split
from train import bradley_terry, hieval_stage1, hieval_stage2, truthful_judge

SCRIPTS: dict[str, Any] = {
    "hieval_stage1": hieval_stage1,
    "hieval_stage2": hieval_stage2,
    "truthful_judge": truthful_judge,
    "pure_label": truthful_judge,
    "bradley_terry": bradley_terry,
}
LOSSES: dict[str, tuple[Family, list[float]]] = {
    "hieval_stage1": ("qwen2_5_vl", [7.7984, 7.01765, 6.60113, 5.70362, 5.91346, 5.74181]),
    "hieval_stage2": ("qwen3_vl", [7.4222, 7.27063, 6.96593, 6.88361, 6.52828, 6.38531]),
    "truthful_judge": ("qwen2_5_vl", [6.6761, 6.4562, 6.30283, 6.09993, 5.95029, 5.8526]),
    "pure_label": ("qwen3_vl", [7.33713, 7.14838, 6.66786, 6.29822, 5.76127, 5.88979]),
    "bradley_terry": ("qwen3_vl", [0.637618, 0.61081, 0.517207, 0.483827, 0.412757, 0.498271]),
}


def _pairs() -> list[LabelledExample]:
    """Pairs with critiques; every fifth is a tie."""
    return [
        LabelledExample(
            id=f"pair{number}",
            task="truthful-pair",
            question="Which river" + " runs" * (number % 3) + "?",
            responses=("green", "brown") if number % 2 else ("brown", "green"),
            label=(label := "None" if number % 5 == 4 else "BA"[number % 2]),
            critique=f"{label} says green." + " It is." * (number % 4),
            confidence=0.75,
            mode="critique",
        )
        for number in range(24)
    ]


def _stage(name: str, folder: Path, backbone: str) -> dict[str, Any]:
    """Return what a stage's recipe has beside the shared sections."""
    if name == "hieval_stage1":
        rows = examples(24)
    elif name == "hieval_stage2":
        rows = analysed(folder, 24)
    else:
        rows = _pairs()
    split = write_split(folder / "rows.jsonl", rows)
    recipe: dict[str, Any] = {"data": {"train": [split], "val": split, "val_limit": 6}}
    recipe["data"]["allow_overlap"] = True
    if name == "hieval_stage2":
        earlier = write_split(folder / "earlier.jsonl", examples(30))
        recipe["replay"] = {"train": [earlier], "val": earlier, "rho": 0.5, "val_limit": 6}
        adapted = add_adapter(load_backbone(backbone, dtype="float32").model, r=4, alpha=8)
        adapted.save_pretrained(str(folder / "first"))
        recipe["adapter"] = {"init": str(folder / "first"), "dropout": 0.1}
    if name == "pure_label":
        recipe["task"] = "truthful-pure-label"
    return recipe


def run_stage(name: str, folder: Path, backbone: str) -> dict[str, Any]:
    """Train six steps of a stage; return losses, validations and the adapter's hash."""
    recipe = {
        "backbone": backbone,
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.1},
        "optim": {"lr": 5e-3, "batch_size": 8, "token_budget": 800, "epochs": 3, "max_steps": 6},
        "run": {
            "output": str(folder / "run"),
            "precision": "fp32",
            "seed": 3,
            "log_every": 1,
            "eval_every": 3,
        },
    } | _stage(name, folder, backbone)
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    SCRIPTS[name].main(["--config", str(path)])
    history = json.loads((folder / "run" / "history.json").read_text(encoding="utf-8"))
    return {
        "losses": [entry["train_loss"] for entry in history if "train_loss" in entry],
        "validations": [entry for entry in history if "val_nll" in entry],
        "adapter": file_sha256(folder / "run" / "adapter_model.safetensors"),
    }


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses_are_those_of_before(
    name: str, tiny_folders: Callable[[Family], str], tmp_path: Path
) -> None:
    family, losses = LOSSES[name]
    run = run_stage(name, tmp_path, tiny_folders(family))
    assert len(run["losses"]) == 6
    # Kernels of other processors sum in another order.
    assert run["losses"] == pytest.approx(losses, rel=1e-3)
    assert [entry["step"] for entry in run["validations"]] == [0, 3, 6]


def _record() -> dict[str, Any]:
    """Run every stage on its backbone."""
    from accelerate.state import AcceleratorState

    runs: dict[str, Any] = {}
    for name, (family, _) in LOSSES.items():
        AcceleratorState._reset_state(reset_partial_state=True)
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as run:
            runs[name] = run_stage(name, Path(run), str(save_tiny(Path(folder), family)))
    return runs


if __name__ == "__main__":
    print(json.dumps(_record(), indent=1))  # noqa: T201
