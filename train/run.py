"""Train a judge by the method that its recipe names.

accelerate launch train/run.py --config RECIPE [key.path=value ...]

The other scripts of this folder start here too, each with a method and a recipe of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from accelerate import Accelerator

from data_prep.splits.overlap import Overlap
from judging.judge import CALIBRATION_FILE
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from train.dry_run.rehearsal import Rehearsal, keys_of_random_weights
from train.finish.calibrate import calibrate
from train.finish.kept_grades import KeptGrades
from train.finish.model_card import write_model_card
from train.finish.processes import Processes
from train.finish.report import announce, report_test
from train.finish.result import RunResult
from train.finish.start import grade_start
from train.finish.write_judge import write_judge
from train.launch.command_line import command_line, launch_command, load_recipe, parse_arguments
from train.loop.accelerator import make_accelerator
from train.loop.checkpoint import check_run_folder
from train.loop.finished_trainer import FinishedTrainer
from train.loop.sharding import first_device
from train.methods import find_method, method_of
from train.methods.base import JudgeMethod, Method, WeightsMethod
from train.setup.data import RunSplits, check_splits
from train.setup.overlap import check_overlaps
from train.setup.recipe import Recipe, read_values
from train.setup.recipe_files import find_recipe
from train.setup.run_identity import hash_files, run_identity
from train.setup.starting_adapter import with_shape_of_init
from train.tracking.parts import PARTS


@dataclass(frozen=True)
class EntryPoint:
    """The main function of a training script; processes that are started take it along."""

    name: str | None = None
    """Method of recipes that name none. Its recipe is trained with unless ``--config`` names
    another."""

    def __call__(self, argv: Sequence[str] | None = None) -> None:
        """Train as the arguments say; default those of the process."""
        own = find_method(self.name) if self.name else None
        script = own.script if own else "run"
        with command_line():
            arguments = parse_arguments(script, argv, own.default_recipe or script if own else None)
            path, keys = find_recipe(arguments.config), list(arguments.overrides)
            method = method_of(path, read_values(path, keys), self.name)
        with command_line(method.without_hub):
            command = launch_command(script, argv)
            if arguments.random_weights:
                keys += keys_of_random_weights(path, keys)
            if arguments.dry_run is None:
                run(method, command, path, keys)
            else:
                train = partial(run, method, command)
                Rehearsal(train, method, path, keys, arguments.dry_run).run()


def run(method: type[Method], command: str, path: Path, keys: Sequence[str]) -> None:
    """Train a judge, calibrate it, and report on its test split.

    Args:
        method: How to train.
        command: Command that was typed.
        path: Recipe file.
        keys: ``key.path=value`` of the recipe.

    Raises:
        CustosError: If something is missing or wrong that the user can mend.
    """
    recipe = load_recipe(method, path, keys)
    if issubclass(method, WeightsMethod):
        method.train(recipe)
        return
    assert issubclass(method, JudgeMethod)

    splits = method.read_rows(recipe)
    overlaps = check_overlaps(splits, recipe.data)
    recipe = with_shape_of_init(recipe)
    check_splits(splits, recipe.data)
    training = method(recipe, splits)
    hashes = hash_files(recipe.files)
    check_run_folder(recipe.run.output, run_identity(recipe, None, hashes))

    accelerator = make_accelerator(recipe.run)
    encoder = load_encoder(recipe, accelerator)
    trainer = training.fit(encoder, accelerator, hashes)
    finish_run(trainer, training.splits, hashes, overlaps, method.script, command)


def load_encoder(recipe: Recipe, accelerator: Accelerator) -> Encoder:
    """Load the backbone of a recipe, and return what encodes rows for it."""
    with PARTS.measured("load"):
        backbone = load_backbone(
            recipe.backbone,
            dtype=recipe.run.dtype,
            device=accelerator.device,
            quantization=recipe.run.quantization,
            held_on=first_device(accelerator),
        )
    backbone = backbone.with_pixels(recipe.run.min_pixels, recipe.run.max_pixels)
    return Encoder(backbone, recipe.run.response_budget)


def finish_run(
    trainer: FinishedTrainer,
    splits: RunSplits,
    hashes: Mapping[str, str],
    overlaps: Sequence[Overlap],
    script: str,
    command: str,
) -> None:
    """Write the judge of a finished run, calibrate it, measure it, and write its card.

    All processes grade rows for the calibration and for the test, and keep what they graded until
    everything is written; the first one writes.

    Args:
        trainer: Trainer after its last step; it cannot be used again.
        splits: Splits of the run.
        hashes: SHA-256 of every file when it was read, by the name the recipe gives it.
        overlaps: Overlaps between splits that the recipe allows.
        script: Name of the training script.
        command: Command that was typed.
    """
    recipe, rows, progress = trainer.recipe, trainer.rows, trainer.progress
    folder, device = recipe.run.output, trainer.accelerator.device
    processes = Processes.of(trainer.accelerator)
    kept = KeptGrades(folder, processes)
    if processes.is_first:
        write_judge(recipe, rows.train.encoder.backbone, rows, progress, hashes)
        (folder / CALIBRATION_FILE).unlink(missing_ok=True)
    start = grade_start(trainer, splits.test, kept) if splits.test is not None else {}
    trainer.free_memory()  # the finished judge, loaded next, may not fit beside it
    report = None
    if splits.cal is not None or splits.test is not None:
        with PARTS.measured("judge load"):
            judge = processes.load_judge(folder, device)
        if splits.cal is not None:
            judge.calibration = calibrate(judge, splits.cal, kept)
        if splits.test is not None:
            report = report_test(judge, recipe, splits.test, start, command, kept)
    if processes.is_first:
        result = RunResult(recipe, splits, hashes, overlaps, progress, report)
        write_model_card(result, script, rows.watched)
        announce(result)
    kept.delete()


main = EntryPoint()

if __name__ == "__main__":
    main()
