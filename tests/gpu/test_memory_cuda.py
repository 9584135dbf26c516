"""Peak memory on a GPU is the planned one: ``pytest -m cuda -s tests/gpu/test_memory_cuda.py``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tests.gpu.figures import ON_GPU, REHEARSAL, Figures
from tests.gpu.recipes import train
from tests.gpu.steps import FAMILIES
from tests.hub import LAYOUTS, HubLayout, save_hub_layout
from tests.train.made_up import example, write_split
from train.launch.run_plan import plan_run

pytestmark = [
    *ON_GPU,
    # tests/train/plan compares plans with steps on the CPU
    pytest.mark.skipif(REHEARSAL, reason="measures the memory of a GPU"),
]
RECIPE = "hieval_stage1"
LARGER: dict[str, Any] = {
    **{"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 16},
    **{"num_attention_heads": 16, "num_key_value_heads": 4},
}
"""Large enough that the workspace of a GPU's libraries, which no plan counts, is small."""
ROWS, WORDS = 8, 600


def _keys_of_run(family: str, checkpointing: bool, folder: Path) -> list[str]:
    """Write a checkpoint and rows of equal length; return the keys of a run of two steps.

    No row begins as another does: what rows share is computed once, and a plan counts on nothing.
    """
    LAYOUTS["larger"] = _larger(LAYOUTS[family])
    try:
        save_hub_layout(checkpoint := folder / "larger", "larger")
    finally:
        del LAYOUTS["larger"]
    words = [("green", "Correct"), ("brown", "Wrong")]
    rows = [
        example(i, question=f"{10 + i} rivers?", responses=(" ".join([word] * WORDS),), label=label)
        for i in range(2 * ROWS)
        for word, label in [words[i % 2]]
    ]
    train_file = write_split(folder / "train.jsonl", rows)
    val_file = write_split(folder / "val.jsonl", rows[:2])
    keys = {
        **{"backbone": checkpoint, "data.train": f"[{train_file}]", "data.val": val_file},
        **{"data.cal": "null", "data.test": "null", "data.allow_overlap": "true"},
        **{"optim.batch_size": ROWS, "optim.token_budget": 10**6, "optim.max_steps": 2},
        **{"run.output": folder / "run", "run.workers": 0},
        "run.gradient_checkpointing": str(checkpointing).lower(),
    }
    return [f"{key}={value}" for key, value in keys.items()]


def _measured_peak(keys: list[str]) -> int:
    """Return the most bytes of tensors at once in the second step, weights included."""
    measured: list[int] = []

    def after_step(*_: Any) -> None:
        measured.append(torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()

    hook = register_optimizer_step_post_hook(after_step)
    try:
        train(RECIPE, keys)
    finally:
        hook.remove()
    [_, second] = measured
    return second


def _larger(layout: HubLayout) -> HubLayout:
    """Return a layout with more and wider layers."""
    half_of_head = LARGER["hidden_size"] // LARGER["num_attention_heads"] // 2
    text = dict(layout.config.get("text_config", layout.config)) | LARGER
    section = [half_of_head // 2, half_of_head // 4, half_of_head // 4]
    text["rope_scaling"] = {**text["rope_scaling"], "mrope_section": section}
    if "head_dim" in text:
        text["head_dim"] = 2 * half_of_head
    vision = {**layout.config["vision_config"], "out_hidden_size": LARGER["hidden_size"]}
    is_nested = "text_config" in layout.config
    config = {**layout.config, "text_config": text} if is_nested else text
    return replace(layout, config={**config, "vision_config": vision})


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_peak_memory_is_the_planned_one(
    family: str, checkpointing: bool, tmp_path: Path, figures: Figures
) -> None:
    keys = _keys_of_run(family, checkpointing, tmp_path)
    plan = plan_run(RECIPE, keys, gpus=1, memory=None, rate=None)
    planned, measured = plan.memory.tensors, _measured_peak(keys)
    case = f"{family}{', checkpointing' if checkpointing else ''}"
    figures.add("peak memory", case, measured / 2**20, "MiB")
    figures.add("peak memory by the plan", case, planned / measured, "of measured", "0.85 to 1.15")
    assert planned == pytest.approx(measured, rel=0.15)


def test_memory_grows_in_segments() -> None:
    """PyTorch has read the variable: it was set before the first tensor was on the GPU."""
    torch.ones(1, device="cuda")
    settings = torch.cuda.memory._snapshot()["allocator_settings"]
    assert settings["expandable_segments"]
