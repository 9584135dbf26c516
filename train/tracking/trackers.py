"""Reports of a run: on the screen, in ``train.log``, in ``metrics.jsonl`` and in trackers."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

from accelerate import Accelerator
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from judging.errors import CustosError, FieldError, system_errors_at
from judging.files.atomic import atomic_write
from judging.files.records import known_object, write_json
from train.setup.run_log import RUN_LOG

METRICS_FILE = "metrics.jsonl"
"""A line for every report, with its step, in the run folder."""
LINE_SECONDS = 5
"""Least time between two lines of steps where there is no terminal; the log has them all."""
TIMED_STEPS = 50
"""Newest steps whose mean duration tells the time left."""
FORMATS = {
    "train_loss": "loss {:.4f}",
    "lr": "lr {:.2e}",
    "grad_norm": "gradient {:.2f}",
    "rows_per_second": "{:.1f} rows/s",
    "tokens_per_second": "{:,.0f} tokens/s",
    "padded_share": "{:.0%} padding",
    "mfu": "MFU {:.1%}",
    "data_wait_share": "{:.0%} waiting for data",
    "peak_memory_gb": "{:.1f} GB",
}
"""How a line shows each figure."""


class Tracker:
    """Reports a run: a bar on a terminal, short lines elsewhere, every detail in the log."""

    def __init__(
        self,
        folder: Path,
        total_steps: int,
        accelerator: Accelerator,
        *,
        eval_every: int,
    ) -> None:
        self.folder, self.total_steps, self.eval_every = folder, total_steps, eval_every
        self.silent = not accelerator.is_main_process
        self.console = Console(quiet=self.silent)
        self._bar: Progress | None = None
        if self.console.is_terminal and not self.silent:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=8),  # all of it fits into 80 columns
                MofNCompleteColumn(),
                TextColumn("loss {task.fields[loss]}  {task.fields[rate]} rows/s"),
                TextColumn("{task.fields[left]} left  {task.fields[score]}"),
                console=self.console,
            )
            fields: dict[str, Any] = {"loss": "-", "rate": "-", "left": "-", "score": ""}
            self._task = self._bar.add_task("train", total=total_steps, **fields)
        self._experiment = ExperimentLog(accelerator, folder, self.note)
        self._num_timed, self._started = 0, 0.0
        self._step_began, self._line_shown = 0.0, -math.inf
        self._step_seconds: deque[float] = deque(maxlen=TIMED_STEPS)
        self._validation_seconds = 0.0

    @contextmanager
    def running(self, step: int, config: Mapping[str, Any]) -> Iterator[None]:
        """Report on training while the block runs; the log stays open for what follows."""
        if not self.silent:
            self.note(f"log: {RUN_LOG.open_file(self.folder)}")
            if step:
                self.note(f"resuming {self.folder} at step {step}")
            self._keep_metrics(step)
        try:
            self._experiment.start(step, config)
            if self._bar:
                self._bar.start()
                self._bar.update(self._task, completed=step)
            self._started = self._step_began = monotonic()
            yield
        finally:
            if self._bar:
                self._bar.stop()
            self._experiment.finish()

    def note(self, text: str) -> None:
        """Show a line on the screen and in the log."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        self.detail(text)

    def detail(self, text: str) -> None:
        """Write a line to the log only."""
        if not self.silent:
            RUN_LOG.write(text)

    def advance(self, step: int, num_rows: int) -> None:
        """Count a step that is done, and move the bar."""
        now = monotonic()
        self._num_timed += num_rows
        self._step_seconds.append(now - self._step_began)
        self._step_began = now
        if self._bar:
            self._bar.update(self._task, completed=step, left=self._time_left(step))

    @property
    def seconds(self) -> float:
        """Count the seconds of training since the last report of steps."""
        return monotonic() - self._started

    def log_steps(self, step: int, values: Mapping[str, float]) -> None:
        """Report figures of the steps since the last report, and the speed."""
        rate = self._num_timed / max(self.seconds, 1e-9)
        self._num_timed, self._started = 0, monotonic()
        values = {**values, "rows_per_second": rate}
        figures = "  ".join(
            FORMATS[name].format(values[name]) for name in FORMATS if name in values
        )
        left = self._time_left(step)
        is_due = step == self.total_steps or monotonic() > self._line_shown + LINE_SECONDS
        self._line(f"step {step:>6}/{self.total_steps}  {figures}  {left} left", shown=is_due)
        if is_due:
            self._line_shown = monotonic()
        if self._bar:
            loss = f"{values['train_loss']:.3f}"
            self._bar.update(self._task, loss=loss, rate=f"{rate:.1f}", left=left)
        self._record(step, values)

    def log_scores(self, step: int, scores: Mapping[str, float], count: int) -> None:
        """Report what a validation measured on ``count`` rows."""
        text = "  ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items())
        self._line(f"step {step:>6}/{self.total_steps}  {text}  (n={count})")
        if self._bar and scores:
            name = next((name for name in scores if name.endswith("accuracy")), next(iter(scores)))
            score = f"{name.replace('_', ' ')} {scores[name]:.3f}"
            self._bar.update(self._task, score=score)
        self._record(step, scores)

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Leave the time that the block takes out of the training speed; name it on the bar."""
        began = monotonic()
        if self._bar:
            self._bar.update(self._task, description="valid")
        yield
        if self._bar:
            self._bar.update(self._task, description="train")
        self._validation_seconds = monotonic() - began
        self._started += self._validation_seconds
        self._step_began += self._validation_seconds

    def _time_left(self, step: int) -> str:
        """Estimate the time that the steps and validations to come will take, in words."""
        steps, every = self.total_steps - step, self.eval_every
        validations = -(-self.total_steps // every) - step // every if steps else 0
        mean = sum(self._step_seconds) / max(1, len(self._step_seconds))
        seconds = steps * mean + validations * self._validation_seconds
        if seconds >= 2 * 3600:
            return f"{seconds / 3600:.1f} h"
        return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"

    def _line(self, text: str, *, shown: bool = True) -> None:
        if self._bar or not shown:
            self.detail(text)
        else:
            self.note(text)

    def _record(self, step: int, values: Mapping[str, float]) -> None:
        """Write values of a step to the metrics file and the trackers."""
        self._experiment.log(values, step)
        if not self.silent:
            known = {
                name: value if math.isfinite(value) else None for name, value in values.items()
            }
            path = self.folder / METRICS_FILE
            with system_errors_at(path), path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **known}) + "\n")

    def _keep_metrics(self, step: int) -> None:
        """Keep the metrics up to a step; a resumed run writes the others again."""
        path = self.folder / METRICS_FILE
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # cut off when the run was killed
                continue
            if step and isinstance(entry, dict) and entry.get("step", step + 1) <= step:
                kept.append(f"{line}\n")
        with atomic_write(path) as file:
            file.writelines(kept)


PROJECT = "custos"
"""Project of W&B, experiment of MLflow and folder of TensorBoard."""
RUNS_FILE = "trackers.json"
"""Names of the run in each tracker, so that a resumed run goes on in the same ones."""
PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow-skinny"}
"""Package to install for each tracker; the tracker's name is that of its module."""
STORE = "MLFLOW_TRACKING_URI"
"""Environment variable with the place that MLflow writes to."""
QUIET = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "WANDB_ERROR_REPORTING": "false",
}
"""Environment of the trackers, where the operator has not set it: files, and no reports home."""


def check_trackers(names: Sequence[str]) -> None:
    """Raise ``FieldError``, with the command to install it, if a tracker's package is missing."""
    for name in names:
        if find_spec(name) is None:
            raise FieldError(
                "run.trackers", f"{name} is not installed: pip install {PACKAGES[name]}"
            )


class ExperimentLog:
    """A run in all its trackers; the first process alone writes them.

    A tracker that fails during training is left out from then on, and training goes on.
    """

    def __init__(self, accelerator: Accelerator, folder: Path, note: Callable[[str], None]) -> None:
        self.accelerator, self.folder, self.note = accelerator, folder, note
        self._has_local_store = False

    def start(self, step: int, config: Mapping[str, Any]) -> None:
        """Start every tracker, or go on in the run that it had."""
        names = [str(name) for name in self.accelerator.log_with]
        if not names or not self.accelerator.is_main_process:
            return
        for variable, value in QUIET.items():
            os.environ.setdefault(variable, value)
        runs, is_new = known_object(self.folder / RUNS_FILE), True
        settings: dict[str, dict[str, Any]] = {}
        scalars = {
            key: value if isinstance(value, bool | int | float | str) else json.dumps(value)
            for key, value in config.items()
        }
        try:
            if "tensorboard" in names:  # events after the checkpoint are written again
                settings["tensorboard"] = {"purge_step": step + 1 if step else 0}
            if "wandb" in names:
                settings["wandb"] = self._wandb_settings(runs)
            if "mlflow" in names:
                settings["mlflow"], is_new = self._mlflow_settings(runs)
            self.accelerator.init_trackers(PROJECT, init_kwargs=settings)
            if "mlflow" in names:
                run = self.accelerator.get_tracker("mlflow", unwrap=True)
                runs["mlflow"] = {**runs.get("mlflow", {}), self._store: run.info.run_id}
            for tracker in self.accelerator.trackers:
                # TensorBoard would make a run of its own of them; MLflow refuses other values.
                if tracker.name == "wandb" or (tracker.name == "mlflow" and is_new):
                    tracker.store_init_configuration(scalars)
        except Exception as error:  # noqa: BLE001 (each library raises its own, down to HTTP)
            text = " ".join(str(error).split()) or type(error).__name__
            raise CustosError(f"run.trackers={','.join(names)}: {text}") from None
        if runs:
            write_json(self.folder / RUNS_FILE, runs)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Record values of a step in every tracker."""
        for tracker in list(self.accelerator.trackers):
            try:
                tracker.log(dict(values), step=step)
            except Exception as error:  # noqa: BLE001 (a tracker must not end a run of hours)
                self.accelerator.trackers.remove(tracker)
                self.note(f"warning: {tracker.name} records no more: {error}")

    def finish(self) -> None:
        """Write what the trackers still hold.

        ``Accelerator.end_training`` would also part the processes, which work on after training.
        """
        while self.accelerator.trackers:
            tracker = self.accelerator.trackers.pop()
            try:
                tracker.finish()
            except Exception as error:  # noqa: BLE001 (as above)
                self.note(f"warning: {tracker.name} did not finish: {error}")
        if self._has_local_store:  # another run of this process has its own
            del os.environ[STORE]
            self._has_local_store = False

    @property
    def _store(self) -> str:
        """Name MLflow's store: a server, or the run folder wherever it lies."""
        return "run folder" if self._has_local_store else os.environ[STORE]

    def _wandb_settings(self, runs: dict[str, Any]) -> dict[str, Any]:
        import wandb

        runs.setdefault("wandb", secrets.token_hex(4))
        return {
            "id": runs["wandb"],
            "name": self.folder.name,
            "dir": str(self.folder),
            "resume": "allow",
            "mode": os.environ.get("WANDB_MODE", "offline"),
            # Neither command line nor environment, repository or screen is recorded.
            "settings": wandb.Settings(
                console="off", silent=True, save_code=False, disable_git=True, x_disable_meta=True
            ),
        }

    def _mlflow_settings(self, runs: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Choose the settings of MLflow, and whether its run is a new one."""
        import mlflow

        if STORE not in os.environ:
            os.environ[STORE] = (self.folder / "mlflow").resolve().as_uri()
            self._has_local_store = True
        known = runs.get("mlflow", {}).get(self._store)
        try:
            run_id = mlflow.get_run(known).info.run_id if known else None
        except mlflow.exceptions.MlflowException:  # deleted since
            run_id = None
        return {"run_id": run_id, "run_name": self.folder.name}, run_id is None
