"""Passes on several cores: all of them run, on one core each, and an error is not lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from judging.scoring.tree_engine import run_on_cores


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_every_number_is_run_once_on_one_core_without_gradients() -> None:
    seen: list[tuple[int, int, bool]] = []
    run_on_cores(
        lambda number: seen.append(
            (number, torch.get_num_threads(), torch.is_inference_mode_enabled())
        ),
        range(25),
        num_cores=2,
    )
    assert sorted(seen) == [(number, 1, True) for number in range(25)]
    assert not torch.is_inference_mode_enabled()


def test_calls_run_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=20)

    def meet(number: int) -> None:
        together.wait()

    run_on_cores(meet, range(4), num_cores=2)


def test_threads_are_as_before_here_and_in_threads_that_start_later() -> None:
    run_on_cores(lambda number: None, range(4), num_cores=2)
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), later) == (2, [2])


def test_the_first_error_is_raised_and_what_has_not_begun_is_left_out() -> None:
    begun: list[int] = []

    def run(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError(f"number {number}")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="number 1"):
        run_on_cores(run, range(10_000), num_cores=2)
    assert len(begun) < 10_000
    assert torch.get_num_threads() == 2
