"""The screen of a guided tour: numbered steps, the commands they run, and a log for the rest."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import typer

from judging.errors import CustosError
from judging.models.devices import num_cores

PROGRAMS = {"custos": "cli", "accelerate": "accelerate.commands.accelerate_cli"}
"""Modules that run a program, which may not be on the path."""


class Screen:
    """Shows numbered steps and runs their commands.

    Args:
        log: File for what the commands print; it is replaced.
        num_steps: How many steps there will be.
    """

    def __init__(self, log: Path, num_steps: int) -> None:
        self.log, self.num_steps = log, num_steps
        self._step, self._started = 0, time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")

    def step(self, title: str) -> None:
        """Begin the next step: show its number, its title and the time since the start."""
        self._step += 1
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        typer.secho(
            f"\n{self._step}/{self.num_steps}  {title}  [{minutes}:{seconds:02}]", bold=True
        )

    def show(self, lines: str | Iterable[str]) -> None:
        """Show one or more lines below the step's title."""
        for line in [lines] if isinstance(lines, str) else lines:
            typer.echo(f"     {line}".rstrip())

    def run(self, *command: str, on_screen: bool = False) -> None:
        """Show a command and run it to its end; its standard error goes to the log.

        Args:
            command: Program and arguments, as a user would type them.
            on_screen: Let its standard output on the screen instead of into the log.

        Raises:
            CustosError: If it fails; the error has the last line of the log.
        """
        with self._open_log(command) as log:
            output = None if on_screen else log
            process = subprocess.run(
                _arguments(command), stdout=output, stderr=log, env=_environment(), check=False
            )
        if process.returncode:
            raise self._failed(command)

    @contextmanager
    def running(self, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Show a command and run it while the block runs; what it prints goes to the log."""
        with self._open_log(command) as log:
            process = subprocess.Popen(
                _arguments(command), stdout=log, stderr=log, env=_environment()
            )
            try:
                yield process
            finally:
                process.terminate()
                process.wait()

    def check_running(self, process: subprocess.Popen[bytes], *command: str) -> None:
        """Raise ``CustosError`` if a command of :meth:`running` has ended by itself."""
        if process.poll() is not None:
            raise self._failed(command)

    @contextmanager
    def _open_log(self, command: tuple[str, ...]) -> Iterator[IO[bytes]]:
        text = f"$ {shlex.join(command)}"
        self.show(text)
        with self.log.open("ab", buffering=0) as log:
            log.write(f"{text}\n".encode())
            yield log

    def _failed(self, command: tuple[str, ...]) -> CustosError:
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "").removeprefix("error: ")
        return CustosError(f"'{shlex.join(command[:2])}' failed: {last}; all of it: {self.log}")


def _arguments(command: tuple[str, ...]) -> list[str]:
    program, *arguments = command
    return [sys.executable, "-m", PROGRAMS[program], *arguments]


def _environment() -> dict[str, str]:
    """Return an environment with every CPU core and no GPU, unless the user says otherwise.

    Access keys are left out: the tour asks its own service for verdicts.
    """
    # Without the first, accelerate launch would take one core.
    environment = {"OMP_NUM_THREADS": str(num_cores()), "CUDA_VISIBLE_DEVICES": "", **os.environ}
    environment.pop("CUSTOS_API_KEYS", None)
    return environment
