"""The trackers that a recipe names, through accelerate: TensorBoard, Weights & Biases, MLflow.

Their files lie in the run folder, and nothing leaves the machine unless the operator's environment
says so (``WANDB_MODE=online``, ``MLFLOW_TRACKING_URI``).
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from judging.errors import CustosError, FieldError
from judging.files.records import write_json

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
    """Check that the package of every tracker is installed.

    Raises:
        FieldError: If one is missing; the message has the command that installs it.
    """
    for name in names:
        if find_spec(name) is None:
            raise FieldError(
                "run.trackers", f"{name} is not installed: pip install {PACKAGES[name]}"
            )


class ExperimentLog:
    """A run in all its trackers; the first process alone writes them.

    A tracker that fails during training is left out from then on, and training goes on.

    Args:
        accelerator: Accelerator that was made for these trackers.
        folder: Run folder.
        note: Shows a line to the user.
    """

    def __init__(self, accelerator: Accelerator, folder: Path, note: Callable[[str], None]) -> None:
        self.accelerator, self.folder, self.note = accelerator, folder, note
        self._has_local_store = False

    def start(self, step: int, config: Mapping[str, Any]) -> None:
        """Start every tracker, or go on in the run that it had.

        Args:
            step: Steps done before, by a run that is resumed.
            config: Keys of the recipe.

        Raises:
            CustosError: If a tracker does not start.
        """
        names = [str(name) for name in self.accelerator.log_with]
        if not names or not self.accelerator.is_main_process:
            return
        for variable, value in QUIET.items():
            os.environ.setdefault(variable, value)
        runs, is_new = self._runs(), True
        settings: dict[str, dict[str, Any]] = {}
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
                    tracker.store_init_configuration(_scalars(config))
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
        """Return what names MLflow's store: a server, or the run folder wherever it lies."""
        return "run folder" if self._has_local_store else os.environ[STORE]

    def _runs(self) -> dict[str, Any]:
        try:
            runs = json.loads((self.folder / RUNS_FILE).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return runs if isinstance(runs, dict) else {}

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
        """Return the settings of MLflow, and whether its run is a new one."""
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


def _scalars(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as trackers take them: numbers and text."""
    return {
        key: value if isinstance(value, bool | int | float | str) else json.dumps(value)
        for key, value in config.items()
    }
