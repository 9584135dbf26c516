"""Checkpoints that appear whole or not at all, the run they belong to, and its progress."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from judging.errors import CustosError, FieldError
from judging.files.atomic import whole_folder
from judging.models.adapters import save_adapter
from train.loop.objective import Measured
from train.loop.optimizer import set_state, state_tensors
from train.loop.sharding import like, whole
from train.rows.held_out import check_holds_run
from train.setup.recipe import Recipe, Section

KEEP = 2
"""How many of the newest checkpoints are kept."""
WEIGHT = "weight"
"""Key of a parameter itself, beside the keys of its optimizer state."""


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Find the trainable parameters by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def best_folder(folder: Path, step: int) -> Path:
    """Name the folder of an adapter that was the best so far at a step."""
    return folder / f"best-{step:06d}"


def save_best(folder: Path, step: int, adapted: Any, *, writes: bool = True) -> None:
    """Write the adapter of a step, the best so far; all processes call this, one ``writes``."""
    weights = {name: whole(parameter) for name, parameter in trainable(adapted).items()}
    if writes:
        with whole_folder(best_folder(folder, step)) as partial:
            save_adapter(adapted, partial, weights)


def keep_best(folder: Path, steps: Iterable[int]) -> None:
    """Delete all best adapters but those of some steps."""
    kept = set(steps)
    for step, old in _by_step(folder, "best"):
        if step not in kept:
            shutil.rmtree(old)


def chosen_steps(folder: Path) -> Iterator[int]:
    """Yield the step of the adapter that each checkpoint names as the choice so far."""
    for _, checkpoint in checkpoints(folder):
        with suppress(CustosError):  # a damaged one cannot be resumed from
            yield int(_read_state(checkpoint)["chosen"]["step"])


def save_checkpoint(
    folder: Path,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    identity: Mapping[str, Any],
    *,
    writes: bool = True,
) -> None:
    """Write ``checkpoint-<step>`` under a temporary name, then rename it; keep the newest two.

    A checkpoint holds the trained parameters whole, so any number of processes can go on from it.
    ``model`` is not wrapped; if it is sharded, all processes must call this, and one ``writes``.
    ``state`` is progress that JSON can hold, and ``identity`` is from :func:`run_identity`.
    """
    weights, moments = dict[str, Tensor](), dict[str, Tensor]()
    for name, parameter in trainable(model).items():
        weights[name] = whole(parameter).contiguous()
        for key, tensor in state_tensors(optimizer, parameter).items():
            moments[f"{name}.{key}"] = tensor
    if not writes:
        return
    progress = {"step": step, **state, "identity": identity}
    with whole_folder(folder / f"checkpoint-{step:06d}") as partial:
        save_file(weights, partial / "adapter.safetensors")
        save_file(moments, partial / "optimizer.safetensors")
        (partial / "state.json").write_text(json.dumps(progress), encoding="utf-8")
    for _, old in checkpoints(folder)[:-KEEP]:
        shutil.rmtree(old)


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """List step and folder of every checkpoint of a run, the oldest first."""
    return _by_step(folder, "checkpoint")


def newest_checkpoint(folder: Path) -> Path | None:
    """Find the folder of a run's newest checkpoint; ``None`` if the run has none."""
    every = checkpoints(folder)
    return every[-1][1] if every else None


def newest_settings(folder: Path) -> dict[str, Any]:
    """Read the settings that a run's newest checkpoint was saved with; none without one."""
    newest = newest_checkpoint(folder)
    settings: dict[str, Any] = _read_state(newest).get("settings", {}) if newest else {}
    return settings


def check_run_folder(folder: Path, identity: Mapping[str, Any]) -> None:
    """Refuse a run folder that cannot be this run's, before anything is loaded."""
    if folder.exists() and not folder.is_dir():
        raise FieldError("run.output", f"{folder} is a file; choose a folder")
    check_holds_run(folder)
    if newest := newest_checkpoint(folder):
        saved = _read_state(newest).get("identity")
        known = saved and {key: saved[key] for key in saved if key != "backbone_version"}
        _check_identity(folder, known, identity)


def _by_step(folder: Path, kind: str) -> list[tuple[int, Path]]:
    """List step and path of every ``KIND-STEP`` of a run, by step.

    Other names that begin alike, such as those of copies that the user made, are left out.
    """
    matches = ((re.fullmatch(rf"{kind}-(\d{{6,}})", path.name), path) for path in folder.glob("*"))
    return sorted((int(match[1]), path) for match, path in matches if match)


def _read_state(checkpoint: Path) -> dict[str, Any]:
    with _damage_named(checkpoint):
        state: dict[str, Any] = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    return state


@contextmanager
def _damage_named(checkpoint: Path) -> Iterator[None]:
    """Turn an error of reading a checkpoint into one that calls it damaged."""
    try:
        yield
    except (OSError, ValueError, SafetensorError):
        raise CustosError(
            f"{checkpoint}: damaged; delete it, and the run goes on from an earlier checkpoint or "
            "starts again"
        ) from None


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint."""

    state: dict[str, Any]
    """Step and progress."""
    tensors: dict[str, dict[str, Tensor]]
    """By trained parameter: its ``weight`` and its optimizer state."""

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Put the tensors into a model and its optimizer.

        There is no random state to restore: every step sets its own seed.
        """
        with torch.no_grad():
            for name, parameter in trainable(model).items():
                kept = dict(self.tensors[name])
                parameter.copy_(like(kept.pop(WEIGHT), parameter))
                if kept:
                    set_state(optimizer, parameter, kept)


def read_checkpoint(
    folder: Path, model: nn.Module, identity: Mapping[str, Any]
) -> Checkpoint | None:
    """Read the newest checkpoint of a run folder; return ``None`` if it has none.

    Raises ``CustosError`` if the folder holds a run of another identity (the error names what
    differs), other parameters, or a damaged checkpoint.
    """
    newest = newest_checkpoint(folder)
    if newest is None:
        return None
    state = _read_state(newest)
    _check_identity(folder, state.pop("identity", None), identity)
    with _damage_named(newest):
        weights = load_file(newest / "adapter.safetensors")
        moments = load_file(newest / "optimizer.safetensors")
    shapes = {name: tensor.shape for name, tensor in weights.items()}
    if shapes != {name: parameter.shape for name, parameter in trainable(model).items()}:
        raise CustosError(
            f"{newest}: holds other parameters than this recipe trains; "
            "name another folder with --out (run.output)"
        )
    tensors = {name: {WEIGHT: weight} for name, weight in weights.items()}
    for key, tensor in moments.items():
        name, _, kept = key.rpartition(".")
        tensors[name][kept] = tensor
    return Checkpoint(state, tensors)


def _check_identity(
    folder: Path, saved: Mapping[str, Any] | None, identity: Mapping[str, Any]
) -> None:
    if saved == identity:
        return
    if saved is None:
        difference = "its checkpoints do not say of which recipe and data"
    else:
        keys = [key for key in {**saved, **identity} if saved.get(key) != identity.get(key)]
        difference = f"of other {', '.join(keys)}"
    raise CustosError(
        f"{folder}: holds another run ({difference}); name another folder with --out (run.output)"
    )


_WITHOUT_EFFECT: Any = {
    "data": {"allow_overlap"},
    "run": {"output", "peak_tflops"},
    "provenance": True,
}
FREE = {
    "critiques": {"micro_batch"},
    "optim": {"token_budget"},
    "run": {
        *("gradient_checkpointing", "workers", "eval_every", "save_every", "log_every"),
        *("trackers", "patience"),
    },
}
"""Keys that a resumed run may change: steps then differ only by rounding and by dropout's draws.
With another ``eval_every`` or ``patience``, the judge is chosen among other steps."""

_NEWER: dict[str, Any] = {
    **dict.fromkeys(("adapter.rslora", "adapter.dora", "adapter.merger"), False),
    "optim.optimizer": "adamw",
    "run.quantization": None,
}
"""Keys that recipes did not have at first, with the value that stands for their absence."""
_FIRST_METHODS = ("critique", "dpo", "focal", "grpo", "joint", "reward")
"""Methods whose checkpoints do not name them: keys of the recipe tell them apart."""


def run_identity(
    recipe: Section, backbone_version: str | None, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """Collect, by ``section.key``, what decides a run's result: recipe, backbone, file contents."""
    excluded = {**_WITHOUT_EFFECT, **FREE, "run": _WITHOUT_EFFECT["run"] | FREE["run"]}
    values = recipe.model_dump(mode="json", exclude=excluded)
    identity = dict(_flat({**values, "sha256": dict(hashes)}))
    for key, default in _NEWER.items():  # checkpoints of earlier versions lack them
        if key in identity and identity[key] == default:
            del identity[key]
    if identity.get("method") in (None, *_FIRST_METHODS):
        identity.pop("method", None)
    return identity | ({"backbone_version": backbone_version} if backbone_version else {})


def free_settings(recipe: Section) -> dict[str, Any]:
    """Pick the keys of a recipe that a resumed run may change, with their values."""
    return dict(_flat(recipe.model_dump(mode="json", include=FREE)))


def recipe_values(recipe: Section) -> dict[str, Any]:
    """Flatten a recipe: every ``section.key`` with its value."""
    return dict(_flat(recipe.model_dump(mode="json", exclude={"provenance"})))


def _flat(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield section + key, value


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
    """Which of them the adapter before the first step judges as people did."""
    history: list[dict[str, float]] = field(default_factory=list)
    """Entries of a step with its training loss, or with the scores of a validation."""
    losses: list[float] = field(default_factory=list)
    """Losses of the steps since a training loss was last written to ``history``."""
    planned_steps: int = 0
    """Optimizer steps of a run that does not stop early."""

    @classmethod
    def restored(
        cls, state: dict[str, Any], recipe: Recipe, note: Callable[[str], None]
    ) -> Progress:
        """Restore the progress that a checkpoint holds; note settings changed since."""
        before, now = state.pop("settings", {}), free_settings(recipe)
        if changed := [key for key in now if key in before and before[key] != now[key]]:
            values = ", ".join(f"{key}={now[key]} (was {before[key]})" for key in changed)
            chooses = {"run.eval_every", "run.patience"} & set(changed)
            choice = "; the judge is chosen among other steps" if chooses else ""
            note(
                f"changed since the checkpoint: {values}; the steps stay the same up to "
                f"rounding{choice}"
            )
        return cls(**state)

    def state(self, recipe: Recipe) -> dict[str, Any]:
        """Return what a checkpoint holds, ready for JSON: progress and changeable settings."""
        return asdict(self) | {"settings": free_settings(recipe)}

    def add_validation(
        self, measured: Mapping[str, Measured], select: Literal["best", "last"]
    ) -> tuple[dict[str, float], bool]:
        """Record what a validation measured, by the name of the rows.

        Returns the scores by name, and whether the present adapter is the one to choose so far,
        which the rows ``val`` decide.
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
    """Make a key that ranks adapters: by higher accuracy, then by lower ``val_nll``.

    Where people decided no row there is no accuracy, and ``val_nll`` alone ranks. A ``val_nll``
    that is not a number is the worst: the accuracy comes from the same scores.
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
