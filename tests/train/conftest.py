"""A clean distributed state for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from accelerate.state import AcceleratorState

from tests.conftest import Folders


@pytest.fixture(autouse=True)
def fresh_accelerate_state() -> Iterator[None]:
    """Accelerate keeps precision and device in globals; tests choose their own."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(scope="session")
def small(tiny_folders: Folders) -> str:
    """Folder of the tiny Qwen2.5-VL, where one family is enough."""
    return tiny_folders("qwen2_5_vl")
