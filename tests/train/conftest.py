"""A clean distributed state for every test, and a backbone for those that only read it."""

from collections.abc import Iterator

import pytest
from accelerate.state import AcceleratorState

from judging.models.backbones import Backbone, load_backbone
from train.setup.run_log import RUN_LOG


@pytest.fixture(scope="module")
def backbone(small: str) -> Backbone:
    return load_backbone(small, dtype="float32", device="cpu")


@pytest.fixture(autouse=True)
def fresh_accelerate_state() -> Iterator[None]:
    """Accelerate keeps precision and device in globals, the log lines; tests have their own."""
    AcceleratorState._reset_state(reset_partial_state=True)
    RUN_LOG.close_file()
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
