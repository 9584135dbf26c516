"""What the tests of a GPU share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# PyTorch is imported where it is used: pytest reads this file before it is known whether this run
# may see a GPU (tests/conftest.py).
if TYPE_CHECKING:
    from tests.gpu.figures import Figures


@pytest.fixture(autouse=True)
def fresh_state(whole_float32: None) -> Iterator[None]:
    """Accelerate keeps precision and device in globals; a run's weights leave the GPU after it."""
    import torch
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    gc.collect()
    torch.cuda.empty_cache()


@pytest.fixture(scope="session", autouse=True)
def _gpu_set_up() -> None:
    """Set PyTorch up as commands do, before the first tensor is on the GPU."""
    from judging.models.devices import use_device
    from tests.gpu.figures import DEVICE

    use_device(DEVICE)


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Figures:
    """Figures of a test."""
    from tests.gpu.figures import Figures

    return Figures(record_property)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a picture and of a tiny checkpoint of each family, by its published name."""
    from tests.gpu.steps import save_checkpoints

    folder = tmp_path_factory.mktemp("cuda")
    save_checkpoints(folder)
    return folder
