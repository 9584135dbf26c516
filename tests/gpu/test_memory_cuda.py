"""Peak memory on a GPU is the planned one: ``pytest -m cuda -s tests/gpu/test_memory_cuda.py``."""

from pathlib import Path

import pytest
import torch

from tests.gpu.figures import ON_GPU, REHEARSAL, Figures
from tests.gpu.memory import keys_of_run, measured_peak, planned_peak
from tests.gpu.steps import FAMILIES

pytestmark = ON_GPU


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_peak_memory_is_the_planned_one(
    family: str, checkpointing: bool, tmp_path: Path, figures: Figures
) -> None:
    keys = keys_of_run(family, checkpointing, tmp_path)
    planned, measured = planned_peak(keys), measured_peak(keys, tmp_path)
    case = f"{family}{', checkpointing' if checkpointing else ''}"
    figures.add("peak memory", case, measured / 2**20, "MiB")
    figures.add("peak memory by the plan", case, planned / measured, "of measured", "0.85 to 1.15")
    assert planned == pytest.approx(measured, rel=0.15)


@pytest.mark.skipif(REHEARSAL, reason="only a GPU's memory has segments")
def test_memory_grows_in_segments() -> None:
    """PyTorch has read the variable: it was set before the first tensor was on the GPU."""
    torch.ones(1, device="cuda")
    settings = torch.cuda.memory._snapshot()["allocator_settings"]
    assert settings["expandable_segments"]
