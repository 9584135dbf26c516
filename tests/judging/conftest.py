"""Pictures shared by the tests of this folder, and a CPU that multiplies bfloat16."""

from __future__ import annotations

import pytest
import torch

from tests.tiny import save_picture


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Pictures of three shapes."""
    folder = tmp_path_factory.mktemp("pictures")
    shapes = [(60, 60), (150, 40), (50, 130)]
    return [
        save_picture(folder / f"{i}.png", width, height, seed=i)
        for i, (width, height) in enumerate(shapes)
    ]


@pytest.fixture
def bfloat16_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch reports a CPU with bfloat16 instructions, whatever this machine's is."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
