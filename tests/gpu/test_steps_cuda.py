"""Training steps on a GPU are those of the CPU: ``pytest -m cuda -s tests/gpu/test_steps_cuda.py``.

``CUSTOS_CUDA_REHEARSAL=1`` runs every check of this folder on the CPU. That shows that the checks
work; it shows nothing of a GPU.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.gpu.figures import ON_GPU, Figures
from tests.gpu.programs import run_python
from tests.gpu.steps import STEPS, Step, relative_error, take_step

pytestmark = ON_GPU
# Gradients of equal steps differ by 7e-7 of their norm between two orders of summation on a CPU,
# those of a step with other pictures by .4 and more.
FP32 = 1e-4
# On a CPU with bfloat16 instructions the largest of these steps' gradients drifts by .2.
BF16, BF16_COSINE, BF16_LOSS = 0.3, 0.97, 0.05


@pytest.fixture(scope="module")
def on_cpu(checkpoints: Path, request: pytest.FixtureRequest) -> dict[str, dict[str, Tensor]]:
    """Loss and gradients of the steps that tests take, as the CPU computes them, by step.

    The adapters that the steps start from are made beside the checkpoints.
    """
    file = checkpoints / "cpu.safetensors"
    names = {
        str(step)
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
        for step in ([item.callspec.params["step"]] if hasattr(item, "callspec") else STEPS)
    }
    run_python("-m", "tests.gpu.steps", str(checkpoints), str(file), *names, on_cpu=True)
    steps: dict[str, dict[str, Tensor]] = {}
    for key, tensor in load_file(file).items():
        name, _, part = key.rpartition("/")
        steps.setdefault(name, {})[part] = tensor
    return steps


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_step_in_float32_is_that_of_the_cpu(
    step: Step,
    checkpoints: Path,
    on_cpu: dict[str, dict[str, Tensor]],
    tmp_path: Path,
    figures: Figures,
) -> None:
    expected = on_cpu[str(step)]
    taken = take_step(step, "fp32", checkpoints, tmp_path / "step")
    error = relative_error(taken, expected)
    figures.add("step fp32, gradient error", str(step), error, "of norm", f"< {FP32:g}")
    torch.testing.assert_close(taken["loss"], expected["loss"], rtol=1e-5, atol=1e-6)
    assert error < FP32


@pytest.mark.parametrize("step", [s for s in STEPS if not s.checkpointing], ids=str)
def test_a_step_in_bfloat16_stays_near(
    step: Step,
    checkpoints: Path,
    on_cpu: dict[str, dict[str, Tensor]],
    tmp_path: Path,
    figures: Figures,
) -> None:
    expected = on_cpu[str(step)]
    taken = take_step(step, "bf16", checkpoints, tmp_path / "step")
    error = relative_error(taken, expected)
    figures.add("step bf16, gradient error", str(step), error, "of norm", f"< {BF16:g}")
    assert error < BF16
    assert torch.cosine_similarity(taken["gradient"], expected["gradient"], dim=0) > BF16_COSINE
    assert abs(taken["loss"] - expected["loss"]) < BF16_LOSS


def test_the_comparison_notices_other_pictures(on_cpu: dict[str, dict[str, Tensor]]) -> None:
    """And gradient checkpointing changes nothing, or the checks above would prove little."""
    for step in STEPS:
        if step.pictures:
            text = on_cpu[str(replace(step, pictures=False))]
            assert relative_error(on_cpu[str(step)], text) > 1000 * FP32
        if step.checkpointing:
            plain = on_cpu[str(replace(step, checkpointing=False))]
            assert relative_error(on_cpu[str(step)], plain) < FP32
