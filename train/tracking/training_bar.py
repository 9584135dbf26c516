"""The bar that a training run shows on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class TrainingBar:
    """One line: steps, loss, speed, time left and the latest validation.

    Args:
        console: Terminal to draw on.
        total_steps: Steps of the run.
        unit: What the speed counts.
    """

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
        """Draw the bar at the number of steps done."""
        self._progress.start()
        self._task = self._progress.add_task(
            "train", total=self._total, completed=step, **self._fields
        )

    def update(self, step: int, **fields: Any) -> None:
        """Move the bar to a number of steps and change what it says: loss, rate, left, score."""
        self._progress.update(self._task, completed=step, **fields)

    def describe(self, description: str) -> None:
        """Name what runs now, before the bar."""
        self._progress.update(self._task, description=description)

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()
