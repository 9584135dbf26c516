"""Processes that are forked from one that has imported the libraries.

A new interpreter spends five to ten seconds on torch and its kin, a fork none. The rest is as in
any process: exit status, streams, signals, environment. What only a new interpreter shows, such as
what a library prints when it is imported, needs ``subprocess``.
"""

import gc
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import pytest

from judging.judge import Judge

ROOT = Path(__file__).parents[1]
LIBRARIES = (
    *("__main__", "cli.main", "train.hieval_stage1", "train.hieval_stage2", "serve.server"),
    *("evaluation.report.plots", "matplotlib.pyplot", "peft", "sklearn.linear_model"),
    *("judging.judge", "transformers.models.qwen2_5_vl.modeling_qwen2_5_vl"),
    *("torch.distributed.tensor", "transformers.models.qwen3_vl.modeling_qwen3_vl"),
)
"""What is imported once; importing our own modules has no effects (``tests/test_imports.py``)."""


@cache
def fork_context() -> ForkServerContext:
    """Return what processes are forked with; the one that imports the libraries is started."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LIBRARIES))
    forkserver.ensure_running()
    return context


@dataclass(frozen=True)
class Fork:
    """A forked process, and the files that it prints to."""

    process: ForkServerProcess
    output: Path
    errors: Path

    @property
    def stdout(self) -> str:
        """Text of its standard output so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self) -> str:
        """Text of its standard error so far."""
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def poll(self) -> int | None:
        """Return its exit status, or nothing while it runs."""
        return self.process.exitcode

    def wait(self, seconds: float = 300) -> int:
        """Return its exit status; fail after so many seconds."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            pytest.fail(f"still running after {seconds} s: {self.stderr[-3000:]}")
        return self.process.exitcode

    def wait_for(self, pattern: str | re.Pattern[str], seconds: float = 120) -> re.Match[str]:
        """Wait until it has printed something to either stream; return the match."""
        end = time.monotonic() + seconds
        while True:
            has_ended = self.poll() is not None
            match = re.search(pattern, self.stdout + self.stderr)
            if match:
                return match
            if has_ended or time.monotonic() > end:
                pytest.fail(f"printed no {pattern!r}: {self.stdout[-1000:]} {self.stderr[-3000:]}")
            time.sleep(0.01)

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        assert self.process.pid
        os.kill(self.process.pid, number)


@contextmanager
def forked(
    target: Callable[..., object],
    *arguments: object,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Fork]:
    """Call a function in a process of its own, which ends with the block at the latest.

    Args:
        target: Function of a module.
        arguments: What it is called with.
        folder: Folder that the process works in.
        environment: Variables beside those of this process.
    """
    with _several([(target, environment or {})], arguments, folder) as [fork]:
        yield fork


@contextmanager
def _several(
    calls: Sequence[tuple[Callable[..., object], Mapping[str, str]]],
    arguments: Sequence[object],
    folder: Path,
) -> Iterator[list[Fork]]:
    """Start processes with variables of their own that print to the same two files."""
    with tempfile.TemporaryDirectory(prefix="custos-fork-") as name:
        output, errors = Path(name, "stdout"), Path(name, "stderr")
        output.touch()
        errors.touch()
        forks = []
        try:
            for target, environment in calls:
                variables = {**os.environ, **environment}
                process = start(output, errors, folder, variables, target, *arguments)
                forks.append(Fork(process, output, errors))
            yield forks
        finally:
            for fork in forks:
                fork.process.kill()
                fork.process.join(60)


def start(
    output: Path,
    errors: Path,
    folder: Path,
    variables: Mapping[str, str],
    target: Callable[..., object],
    *arguments: object,
) -> ForkServerProcess:
    """Start a process that calls a function and prints to these files; it is left to itself."""
    process = fork_context().Process(
        target=_enter, args=(output, errors, folder, variables, target, *arguments)
    )
    process.start()
    return process


def _enter(
    output: Path,
    errors: Path,
    folder: Path,
    variables: Mapping[str, str],
    target: Callable[..., object],
    *arguments: object,
) -> None:
    """Begin a forked process: its streams, its environment, its folder."""
    for number, path in ((1, output), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    sys.stdout, sys.stderr = (
        os.fdopen(number, "w", buffering=1, encoding="utf-8", closefd=False) for number in (1, 2)
    )
    gc.freeze()  # what is imported stays, and collections need not walk through it
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    target(*arguments)


def run(
    target: Callable[..., object],
    *arguments: object,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    seconds: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Call a function in a process of its own; return how it ended and what it printed."""
    with forked(target, *arguments, folder=folder, environment=environment) as fork:
        status = fork.wait(seconds)
        return subprocess.CompletedProcess(
            [str(value) for value in arguments], status, fork.stdout, fork.stderr
        )


def custos(*arguments: str) -> None:
    """Run the command ``custos`` with these arguments, as the target of a fork."""
    from cli.main import app

    sys.argv = ["custos", *arguments]
    app(prog_name="custos")


def custos_with(load: Callable[[str], Judge], *arguments: str) -> None:
    """Run the command ``custos`` in a fork, with another function in place of ``Judge.load``."""
    setattr(Judge, "load", load)  # noqa: B010 (mypy knows it as a method)
    custos(*arguments)


def run_together(
    processes: int, target: Callable[..., object], *arguments: object, seconds: float = 300
) -> str:
    """Call a function in processes that know each other as those of ``torchrun`` do.

    Returns:
        What they printed.
    """
    # Slow to import, and most tests start no processes.
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # torch does not list it

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    everywhere = {
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "GLOO_SOCKET_IFNAME": "lo"},
        **{"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)},
        **{"TORCHELASTIC_USE_AGENT_STORE": "True", "OMP_NUM_THREADS": "1"},
    }
    calls = [
        (_in_one_thread, everywhere | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(processes)
    ]
    with _several(calls, (target, *arguments), ROOT) as forks:
        end = time.monotonic() + seconds
        while any(fork.poll() is None for fork in forks) and time.monotonic() < end:
            if any(fork.poll() for fork in forks):  # the others would wait for it
                break
            time.sleep(0.01)
        assert [fork.poll() for fork in forks] == [0] * processes, forks[0].stderr[-3000:]
        return forks[0].stdout


def _in_one_thread(target: Callable[..., object], *arguments: object) -> None:
    """Call a function where torch computes in one thread, as ``torchrun`` has it."""
    import torch

    torch.set_num_threads(1)
    target(*arguments)
