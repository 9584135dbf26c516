"""What a run reports: on the screen, in ``train.log`` and in TensorBoard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from torch.utils.tensorboard import SummaryWriter

from train.setup.run_log import RUN_LOG


class Tracker:
    """Reports a run: a progress bar on a terminal, short lines elsewhere, every detail in the log.

    Args:
        folder: Run folder.
        total_steps: Optimizer steps of the run.
        rows_per_step: Rows, or other units, of one step.
        unit: What ``rows_per_step`` counts.
        silent: Report nothing, as every process but the first.
    """

    def __init__(
        self,
        folder: Path,
        total_steps: int,
        rows_per_step: int,
        *,
        unit: str = "rows",
        silent: bool = False,
    ) -> None:
        self.folder, self.total_steps, self.silent = folder, total_steps, silent
        self.rows_per_step, self.unit = rows_per_step, unit
        self.console = Console(quiet=silent)
        shows_bar = self.console.is_terminal and not silent
        self._bar = _Bar(self.console, total_steps, unit) if shows_bar else None
        self._board: SummaryWriter | None = None
        self._timed_from, self._started = 0, 0.0

    @contextmanager
    def running(self, step: int) -> Iterator[None]:
        """Report on training while the block runs; the log stays open for what follows.

        Args:
            step: Steps done before, by a run that is resumed.
        """
        if not self.silent:
            self.note(f"log: {RUN_LOG.open_file(self.folder)}")
            if step:
                self.note(f"resuming {self.folder} at step {step}")
            self._board = SummaryWriter(str(self.folder / "tensorboard"))
        if self._bar:
            self._bar.start(step)
        self._timed_from, self._started = step, time.monotonic()
        try:
            yield
        finally:
            if self._bar:
                self._bar.stop()
            if self._board:
                self._board.close()

    def note(self, text: str) -> None:
        """Show a line on the screen and in the log."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        self.detail(text)

    def detail(self, text: str) -> None:
        """Write a line to the log only."""
        if not self.silent:
            RUN_LOG.write(text)

    def advance(self, step: int) -> None:
        """Move the bar to the number of steps done."""
        if self._bar:
            self._bar.update(step)

    def log_loss(self, step: int, loss: float, lr: float) -> None:
        """Report the mean loss since the last report, the learning rate and the speed."""
        now = time.monotonic()
        rate = (step - self._timed_from) * self.rows_per_step / (now - self._started)
        self._timed_from, self._started = step, now
        seconds = (self.total_steps - step) * self.rows_per_step / rate
        left = f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
        self._line(
            f"step {step:>6}/{self.total_steps}  loss {loss:.4f}  lr {lr:.2e}  "
            f"{rate:.1f} {self.unit}/s  {left} left"
        )
        if self._bar:
            self._bar.update(step, loss=f"{loss:.3f}", rate=f"{rate:.1f}", left=left)
        self._scalars(step, {"train_loss": loss, "lr": lr, f"{self.unit}_per_second": rate})

    def log_scores(self, step: int, scores: Mapping[str, float], count: int) -> None:
        """Report what a validation measured on ``count`` rows."""
        text = "  ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items())
        self._line(f"step {step:>6}/{self.total_steps}  {text}  (n={count})")
        if self._bar and scores:
            name = next((name for name in scores if name.endswith("accuracy")), next(iter(scores)))
            self._bar.update(step, score=f"{name.replace('_', ' ')} {scores[name]:.3f}")
        self._scalars(step, scores)

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Leave the time that the block takes out of the training speed; name it on the bar."""
        began = time.monotonic()
        if self._bar:
            self._bar.describe("valid")
        yield
        if self._bar:
            self._bar.describe("train")
        self._started += time.monotonic() - began

    def _line(self, text: str) -> None:
        if self._bar:
            self.detail(text)
        else:
            self.note(text)

    def _scalars(self, step: int, values: Mapping[str, float]) -> None:
        if self._board:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)


class _Bar:
    """One line: steps, loss, speed, time left and the latest validation."""

    def __init__(self, console: Console, total_steps: int, unit: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=8),  # all of it fits into 80 columns
            MofNCompleteColumn(),
            TextColumn(f"loss {{task.fields[loss]}}  {{task.fields[rate]}} {unit}/s"),
            TextColumn("{task.fields[left]} left  {task.fields[score]}"),
            console=console,
        )
        self._fields: dict[str, Any] = {"loss": "-", "rate": "-", "left": "-", "score": ""}
        self._total = total_steps

    def start(self, step: int) -> None:
        self._progress.start()
        self._task = self._progress.add_task(
            "train", total=self._total, completed=step, **self._fields
        )

    def update(self, step: int, **fields: Any) -> None:
        self._progress.update(self._task, completed=step, **fields)

    def describe(self, description: str) -> None:
        self._progress.update(self._task, description=description)

    def stop(self) -> None:
        self._progress.stop()
