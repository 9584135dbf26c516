"""A clean distributed state for every test."""

from collections.abc import Iterator

import pytest
from accelerate.state import AcceleratorState

from train.setup.run_log import RUN_LOG


@pytest.fixture(autouse=True)
def fresh_accelerate_state() -> Iterator[None]:
    """Accelerate keeps precision and device in globals, the log lines; tests have their own."""
    AcceleratorState._reset_state(reset_partial_state=True)
    RUN_LOG.close_file()
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
