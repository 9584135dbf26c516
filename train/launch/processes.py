"""The processes of a training run: in this one, or in several under a launcher."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from judging.errors import CustosError
from judging.models.devices import has_gpu
from train.loop.checkpoint import checkpoints
from train.setup.engines import CPU, LAUNCH_FILES, asks_for, launch_file
from train.setup.run_log import COMMAND_VARIABLE, GRADE_VARIABLE, LAUNCH_LOG

SHOWN = ("error: ", "warning: ", "dry run: ")
"""Beginnings of the lines of ours on standard error; the others are the launcher's."""
STOP_SECONDS = 20


def stop_message(folder: Path, command: str) -> str:
    """Return the line that says where a stopped run goes on."""
    steps = [step for step, _ in checkpoints(folder)]
    where = f"step {steps[-1]}; the same command goes on from there" if steps else ""
    return f"stopped at {where or 'no checkpoint yet; the same command starts again'}: {command}"


def run_script(
    script: str,
    arguments: Sequence[str],
    folder: Path,
    *,
    command: str,
    grade_command: str | None = None,
    processes: int | None = None,
    config_file: Path | None = None,
) -> None:
    """Run a training script; the process exits with its status if it fails or is stopped.

    Args:
        script: Name of the script in ``train/``.
        arguments: Its command line.
        folder: Run folder.
        command: Command that the user typed.
        grade_command: Command that grades the user's table with the finished judge, if one does.
        processes: Number of processes; default one for each GPU, or one.
        config_file: Settings of ``accelerate config``, which may say the number too, or the name of
            a file that came with custos.

    Raises:
        CustosError: If the processes of several fail; the message is that of the first error. If
            PyTorch cannot use the GPUs that are there.
    """
    os.environ[COMMAND_VARIABLE] = command
    if grade_command is not None:
        os.environ[GRADE_VARIABLE] = grade_command
    try:
        if config_file is None and (processes or _num_gpus()) == 1:
            import_module(f"train.{script}").main(arguments)
        else:
            launcher = _launcher(processes, config_file)
            _run_launcher([*launcher, "-m", f"train.{script}", *arguments], folder, command)
    finally:
        del os.environ[COMMAND_VARIABLE]
        os.environ.pop(GRADE_VARIABLE, None)


def _launcher(processes: int | None, config_file: Path | None) -> list[str]:
    if config_file is None:  # accelerate launch starts one process, whatever it is asked, on a CPU
        run = (sys.executable, "-m", "torch.distributed.run")
        return [*run, "--standalone", "--nproc-per-node", str(processes or _num_gpus())]
    file = launch_file(config_file)
    # The shipped files are for any number of GPUs.
    number = processes or (_num_gpus() if file.parent == LAUNCH_FILES else None)
    launch = (sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch")
    given = ["--num_processes", str(number)] if number else []
    return [*launch, "--config_file", str(file), *given]


def _run_launcher(arguments: Sequence[str], folder: Path, command: str) -> None:
    errors: list[str] = []
    others: deque[str] = deque(maxlen=10_000)
    process = subprocess.Popen(
        arguments,
        stderr=subprocess.PIPE,
        env=_environment(),
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C comes to us alone
    )
    assert process.stderr is not None
    try:
        with interrupted_by(signal.SIGTERM, signal.SIGHUP):
            for line in process.stderr:
                if line.startswith("error: "):
                    errors.append(line)
                elif line.startswith(SHOWN):
                    sys.stderr.write(line)
                else:
                    others.append(line)
            status = process.wait()
    except KeyboardInterrupt:
        _stop(process)
        sys.stderr.write(f"\n{stop_message(folder, command)}\n")
        sys.exit(130)
    if errors:
        raise CustosError(errors[0].removeprefix("error: ").strip())
    if status:
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / LAUNCH_LOG
        log.write_text("".join(others), encoding="utf-8")
        raise CustosError(f"{_reason(others)}; all that the processes said: {log}")


def _reason(lines: Sequence[str]) -> str:
    """Return why processes ended that printed no error line of ours."""
    if any("Signal 9 (SIGKILL)" in line or "exitcode: -9" in line for line in lines):
        return (
            "a process was killed, as happens when memory is full; "
            "lower optim.token_budget or --processes"
        )
    errors = [line.strip() for line in lines if "Error: " in line]
    return f"training failed: {errors[0] if errors else 'a process ended'}"


def _stop(process: subprocess.Popen[str]) -> None:
    """Stop a launcher, which stops its processes; a second Ctrl-C changes nothing."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    signal.signal(signal.SIGINT, previous)


@contextmanager
def interrupted_by(*signals: signal.Signals) -> Iterator[None]:
    """Take signals for Ctrl-C while the block runs, so that no process is left behind."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _environment() -> dict[str, str]:
    """Return an environment in which the processes share the CPU's cores."""
    return {"OMP_NUM_THREADS": "1", **os.environ}


def _num_gpus() -> int:
    """Return the number of GPUs, 1 if there is none or the CPU is asked for."""
    import torch

    if asks_for(CPU, os.environ) or not has_gpu():
        return 1
    return torch.cuda.device_count()
