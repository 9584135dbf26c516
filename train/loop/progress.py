"""The progress of a run, and the choice of its best validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from train.loop.checkpoint import describe_changes, free_settings
from train.loop.objective import Measured
from train.setup.recipe import Recipe


@dataclass
class Progress:
    """The progress of a run; saved with every checkpoint."""

    step: int = 0
    """Optimizer steps done."""
    chosen: dict[str, float] = field(default_factory=dict)
    """Step and scores of the validation whose adapter becomes the judge, as ``run.select`` says."""
    right: list[bool | None] | None = None
    """Which validation rows the chosen adapter judges as people did."""
    right_at_start: list[bool | None] | None = None
    """Which validation rows the adapter judged so before the first step."""
    history: list[dict[str, float]] = field(default_factory=list)
    """Step with training loss, or step with the scores of a validation."""
    losses: list[float] = field(default_factory=list)
    """Losses of the steps since a training loss was last written to ``history``."""
    planned_steps: int = 0
    """Optimizer steps of a run that does not stop early."""

    @classmethod
    def restored(
        cls, state: dict[str, Any], recipe: Recipe, note: Callable[[str], None]
    ) -> Progress:
        """Restore the progress that a checkpoint holds; note settings that it was not made with."""
        if changes := describe_changes(state.pop("settings", {}), free_settings(recipe)):
            note(changes)
        return cls(**state)

    def state(self, recipe: Recipe) -> dict[str, Any]:
        """Describe what a checkpoint holds, ready for JSON, with settings that may be changed."""
        return asdict(self) | {"settings": free_settings(recipe)}

    def add_validation(
        self, measured: Mapping[str, Measured], select: Literal["best", "last"]
    ) -> tuple[dict[str, float], bool]:
        """Note what a validation measured, by the name of the rows; ``val`` selects.

        The scores by name are returned with whether the adapter of now is the one to choose so far.
        """
        scores = {
            f"{name}_{metric}": value
            for name, of_rows in measured.items()
            for metric, value in of_rows.scores.items()
        }
        self.history.append({"step": self.step, **scores})
        right, is_chosen = measured["val"].right, not self.chosen or select == "last"
        if self.step == 0:
            self.right_at_start = right
        if is_chosen := is_chosen or selection_key(scores) > selection_key(self.chosen):
            self.chosen, self.right = {"step": self.step, **scores}, right
        return scores, is_chosen


def early_stop_line(progress: Progress, patience: int | None) -> str | None:
    """Say why a run stopped before its last planned step; ``None`` if it did not."""
    without_gain = validations_without_gain(progress.history)
    if patience is None or without_gain < patience or progress.step >= progress.planned_steps:
        return None
    best = int(max(validations_in(progress.history), key=selection_key)["step"])
    return (
        f"stopped early at step {progress.step} of {progress.planned_steps}: {without_gain} "
        f"validations in a row were no better than step {best}'s (run.patience={patience})"
    )


def selection_key(scores: Mapping[str, float]) -> tuple[float, float]:
    """Rank adapters by a key: higher accuracy first, then lower ``val_nll``.

    An accuracy that is not known (no row that people decided) ranks nothing. Where ``val_nll`` is
    not a number, neither are the scores that the accuracy comes from: such a validation is the
    worst.
    """
    if math.isnan(scores["val_nll"]):
        return -1.0, -math.inf
    accuracy = scores.get("val_accuracy", 0.0)
    return 0.0 if math.isnan(accuracy) else accuracy, -scores["val_nll"]


def validations_in(history: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """List the entries of a run's history that are validations, in order."""
    return [entry for entry in history if "val_nll" in entry]


def validations_without_gain(history: Sequence[Mapping[str, float]]) -> int:
    """Count the validations after the best one; of equal ones, the first is best."""
    keys = [selection_key(entry) for entry in validations_in(history)]
    return len(keys) - 1 - keys.index(max(keys)) if keys else 0
