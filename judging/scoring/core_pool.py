"""Passes of a model side by side on the cores of a CPU.

The matrix products of a small batch are too small for several cores to share them well. One pass
on each core finishes sooner than all cores on one pass after another
(``python -m experiments scoring_speed``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import torch


def run_on_cores(run: Callable[[int], None], numbers: Iterable[int], num_cores: int) -> None:
    """Call a function for every number, on several threads that compute with one core each.

    If a call fails, no further one begins, and its error is raised when those that run have ended.

    Args:
        run: Called in inference mode, in order of the numbers as threads become free.
        numbers: Its arguments.
        num_cores: Calls at the same time.
    """
    threads_before = torch.get_num_threads()
    pool = ThreadPoolExecutor(num_cores, "pass", initializer=_compute_on_one_core)
    try:
        for future in [pool.submit(_infer, run, number) for number in numbers]:
            future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        # What a thread sets holds for itself and for every thread that is started later.
        torch.set_num_threads(threads_before)


def _infer(run: Callable[[int], None], number: int) -> None:
    with torch.inference_mode():
        run(number)


def _compute_on_one_core() -> None:
    torch.get_num_threads()  # torch gives a thread the usual number when it first asks
    torch.set_num_threads(1)
