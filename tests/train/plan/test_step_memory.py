"""The planned memory is that of a real step, within 15 %."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.scoring.label_tree import LabelTree
from judging.types import LabelledExample
from tests.tiny import save_picture
from tests.train.made_up import recipe, trainer
from tests.train.plan.measured import (
    ROWS,
    long_rows,
    peak_of_step,
    planned_and_resident,
    planned_step,
)
from train.launch.run_plan import published_config
from train.methods.focal import FocalRecipe
from train.plan.step_memory import StepSize, step_memory


def _planned_and_measured(
    settings: FocalRecipe, folder: str, rows: list[LabelledExample], tmp_path: Path
) -> tuple[int, int]:
    learner = trainer(settings, folder, rows, rows[:2])
    planned = planned_step(settings, learner.rows.train.encoder, rows)
    return planned.total, peak_of_step(learner, [list(range(ROWS))], tmp_path)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_tiny_step_takes_what_was_planned(
    tiny_folder: str, tmp_path: Path, checkpointing: bool
) -> None:
    settings = recipe(tmp_path / "run", run__gradient_checkpointing=checkpointing)
    planned, measured = _planned_and_measured(settings, tiny_folder, long_rows(8), tmp_path)
    assert planned == pytest.approx(measured, rel=0.15)


def test_dora_and_a_trained_merger_take_what_was_planned(small: str, tmp_path: Path) -> None:
    rows = long_rows(8, images=(save_picture(tmp_path / "a.png", 160, 160),))
    settings = recipe(tmp_path / "run", adapter__dora=True, adapter__merger=True)
    planned, measured = _planned_and_measured(settings, small, rows, tmp_path)
    assert planned == pytest.approx(measured, rel=0.15)


def test_weights_of_4_bits_and_moments_of_8_take_less() -> None:
    """Count by hand: four text layers of Qwen2.5-VL-3B, of seven projections each."""
    config = published_config("Qwen/Qwen2.5-VL-3B-Instruct")
    config.text_config.num_hidden_layers = layers = 4
    hidden, inner, heads = 2048, 11008, 256
    layer = 2 * hidden * hidden + 2 * hidden * heads + 3 * hidden * inner
    size = StepSize(1, 0, 16, LabelTree.build(["a"], [[1, 2]]), 2)
    plain = recipe(Path("run"), run__precision="bf16")
    small = recipe(
        Path("run"),
        run__precision="bf16",
        run__quantization="nf4",
        optim__optimizer="paged_adamw_8bit",
    )
    before, after = (
        step_memory(config, each, size, bf16=True, gpu=True) for each in (plain, small)
    )
    saved = layers * layer * (2 - (4 + 8 / 64 + 32 / (64 * 256)) / 8)
    assert before.weights - after.weights == pytest.approx(saved, rel=1e-6)
    # A quarter, scales of blocks, and tensors too small for 8 bits.
    assert 1 < after.optimizer / (before.optimizer / 4) < 1.06
    assert after.trained == before.trained and after.parameters == before.parameters


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_step_of_the_embedded_backbone_takes_what_was_planned(
    tmp_path: Path, precision: str
) -> None:
    settings = recipe(tmp_path / "run", run__precision=precision, adapter__dropout=0.05)
    planned, measured = _planned_and_measured(settings, "embedded", long_rows(8, 60), tmp_path)
    assert planned == pytest.approx(measured, rel=0.15)


@pytest.mark.slow
def test_a_process_of_the_embedded_backbone_takes_what_was_planned(tmp_path: Path) -> None:
    planned, resident = planned_and_resident("embedded", 150, tmp_path)
    assert planned == pytest.approx(resident, rel=0.15)
