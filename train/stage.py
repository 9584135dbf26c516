"""What every stage does around its loss: splits, backbone, adapter, loop, calibration, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from judging.adapters import add_adapter, load_adapter
from judging.backbones import Backbone, load_backbone
from judging.card import CARD_FILE, JudgeCard
from judging.embedded import text_version
from judging.encoder import Encoder
from judging.errors import CustosError, Missing
from judging.types import LabelledExample
from train.batches import Rows
from train.data import load_splits
from train.finish import announce, calibrate, report_test, write_judge, write_model_card
from train.loop import Trainer, accelerator_for
from train.objectives import Objective
from train.recipe import R, Recipe, load_recipe

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
    run = recipe.run
    splits = prepare(load_splits(recipe.data))
    accelerator = accelerator_for(recipe)
    dtype: Literal["bfloat16", "float32"] = "bfloat16" if run.precision == "bf16" else "float32"
    backbone = load_backbone(recipe.backbone, dtype=dtype, device=accelerator.device)
    encoder = Encoder(backbone, run.response_budget)
    rows, val = encode(splits["train"], encoder), encode(splits["val"], encoder)
    watched = {
        name.removeprefix("watch:"): encode(examples, encoder)
        for name, examples in splits.items()
        if name.startswith("watch:")
    }
    objective = objective_for(rows)
    adapted = backbone.with_model(adapted_model(recipe, backbone))
    trainer = trainer_class(recipe, adapted, rows, val, objective, watched)
    progress = trainer.fit()
    if not accelerator.is_main_process:
        return
    write_judge(recipe, backbone, rows, progress)
    report = None
    if "cal" in splits:
        calibrate(run.output, splits["cal"])
    if "test" in splits:
        report = report_test(run.output, splits["test"], command, run.seed)
        write_model_card(run.output, recipe, report, script.name)
    announce(run.output, report)


def adapted_model(recipe: Recipe, backbone: Backbone) -> Any:
    """The backbone's model with the recipe's trainable adapter, fresh or from an earlier run.

    Adapters change the text tower alone, so an earlier run may have had another vision tower.

    Raises:
        CustosError: If the earlier run's adapter was trained on other text weights.
    """
    adapter = recipe.adapter
    if adapter.init:
        card = adapter.init / CARD_FILE
        if card.is_file():
            trained_on = JudgeCard.model_validate_json(card.read_bytes()).backbone_version
            if text_version(trained_on) != text_version(backbone.version):
                raise CustosError(
                    f"adapter.init={adapter.init}: trained on version {trained_on}, which has "
                    f"other text weights than version {backbone.version} of {backbone.name}"
                )
        return load_adapter(backbone.model, adapter.init, trainable=True)
    return add_adapter(
        backbone.model,
        r=adapter.r,
        alpha=adapter.alpha,
        dropout=adapter.dropout,
        modules=adapter.modules,
        seed=recipe.run.seed,
    )


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
