"""Experiments train too: a clean distributed state for every test."""

from tests.train.conftest import fresh_accelerate_state

__all__ = ["fresh_accelerate_state"]
