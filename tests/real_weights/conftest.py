"""Runs of this folder share one process; each begins with a clean distributed state."""

from tests.train.conftest import fresh_accelerate_state as fresh_accelerate_state
