"""What every stage does around its loss: splits, backbone, adapter, loop, calibration, report."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch
from rich.console import Console

from judging.errors import CustosError, Missing
from judging.fingerprint import file_sha256
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from judging.types import LabelledExample
from train.finish.write_judge import (
    announce,
    calibrate,
    report_test,
    watched_table,
    write_judge,
    write_model_card,
)
from train.loop.batches import Rows
from train.loop.trainer import Progress, Trainer, accelerator_for
from train.objectives.focal import Objective
from train.setup.data import check_rows, load_splits
from train.setup.recipe import R, Recipe, load_recipe
from train.setup.run_identity import run_identity
from train.setup.starting_adapter import adapted_model, with_shape_of_init

Splits = dict[str, list[LabelledExample]]


def run_stage(
    recipe: Recipe,
    command: str,
    script: Path,
    objective_for: Callable[[Rows], Objective],
    prepare: Callable[[Splits], Splits] = lambda splits: splits,
    encode: Callable[[list[LabelledExample], Encoder], Rows] = Rows,
    trainer_class: type[Trainer] = Trainer,
) -> None:
    """Train, pick the best adapter, calibrate, report.

    Args:
        recipe: Validated recipe.
        command: What was typed, for the report.
        script: The stage's script.
        objective_for: Builds the objective, given the training rows.
        prepare: Changes the splits before they are encoded (replay). Splits called ``watch:NAME``
            are scored with every validation and never select.
        encode: Turns examples into rows.
        trainer_class: The loop, with what it watches.
    """
    run, splits = recipe.run, prepare(load_splits(recipe.data))
    recipe = with_shape_of_init(recipe)
    sha256 = {name: file_sha256(path) for name, path in recipe.files.items()}
    for name in ("cal", "test"):
        with _naming(str(getattr(recipe.data, name))):
            check_rows(splits.get(name, []))
    fitted = _fit(recipe, splits, sha256, objective_for, encode, trainer_class)
    if fitted is None:
        return
    # The finished judge is loaded beside nothing: what training held would not fit with it.
    gc.collect()
    torch.cuda.empty_cache()
    progress, sizes = fitted
    report = None
    if "cal" in splits:
        calibrate(run.output, splits["cal"])
    if "test" in splits:
        report = report_test(run.output, splits["test"], command, run.seed)
        write_model_card(run.output, recipe, report, script.name, watched_table(progress, sizes))
    announce(run.output, report)


def _fit(
    recipe: Recipe,
    splits: Splits,
    sha256: dict[str, str],
    objective_for: Callable[[Rows], Objective],
    encode: Callable[[list[LabelledExample], Encoder], Rows],
    trainer_class: type[Trainer],
) -> tuple[Progress, dict[str, int]] | None:
    """Train and write the judge; progress and rows of each watched split, in the main process."""
    run, accelerator = recipe.run, accelerator_for(recipe)
    dtype: Literal["bfloat16", "float32"] = "bfloat16" if run.precision == "bf16" else "float32"
    backbone = load_backbone(recipe.backbone, dtype=dtype, device=accelerator.device)
    encoder = Encoder(backbone, run.response_budget)
    encoded: dict[str, Rows] = {}
    for name, examples in splits.items():
        if name not in ("cal", "test"):
            with _naming(f"split '{name}'"):
                encoded[name] = encode(examples, encoder)
    rows, val = encoded.pop("train"), encoded.pop("val")
    watched = {name.removeprefix("watch:"): others for name, others in encoded.items()}
    objective = objective_for(rows)
    adapted = backbone.with_model(adapted_model(recipe, backbone))
    identity = run_identity(recipe, backbone.version, sha256)
    trainer = trainer_class(recipe, adapted, rows, val, objective, identity, watched)
    progress = trainer.fit()
    if not accelerator.is_main_process:
        return None
    write_judge(recipe, backbone, rows, progress, sha256)
    return progress, {name: len(others) for name, others in watched.items()}


@contextmanager
def _naming(split: str) -> Iterator[None]:
    try:
        yield
    except CustosError as error:
        raise CustosError(f"{split}: {error}") from None


def stage_main(
    kind: type[R],
    train: Callable[[R, str], None],
    script: Path,
    argv: Sequence[str] | None,
    embedded: str = "",
) -> None:
    """Command line of a stage: one line and exit status 2 on any known error.

    Args:
        kind: Recipe model of the script.
        train: Runs a recipe, given what was typed.
        script: The script's path.
        argv: Arguments; default those of the process.
        embedded: What to run where neither the recipe's backbone nor its data can be had.
    """
    try:
        recipe = load_recipe(kind, script, argv)
        arguments = " ".join(sys.argv[1:] if argv is None else argv)
        train(recipe, f"accelerate launch train/{script.name} {arguments}".rstrip())
    except CustosError as error:
        instead = f"; without it: {embedded}" if embedded and isinstance(error, Missing) else ""
        Console(stderr=True).print(f"error: {error}{instead}", markup=False, soft_wrap=True)
        sys.exit(2)
    if torch.distributed.is_initialized():
        # Gloo's threads may abort an interpreter that ends; the launcher then stops the process
        # that still writes the report.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
