"""Train a judge by the method that its recipe names.

accelerate launch train/run.py --config RECIPE [key.path=value ...]

The other scripts of this folder start here too, each with a method and a recipe of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from data_prep.splits.overlap import Overlap
from judging.fingerprint import file_sha256
from judging.judge import CALIBRATION_FILE
from judging.models.adapters import ADAPTER_FILE
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from train.finish.grading import KeptGrades, Processes, calibrate, grade_start
from train.finish.write_judge import RunResult, announce, report_test, write_judge, write_model_card
from train.launch.front import command_line, launch_command, load_recipe, parse_arguments
from train.launch.rehearsal import Rehearsal, keys_of_random_weights
from train.loop.accelerator import first_device, make_accelerator
from train.loop.checkpoint import check_run_folder, run_identity
from train.loop.trainer import BaseTrainer
from train.methods import find_method, method_of
from train.methods.base import Method
from train.rows.data import RunSplits, check_overlaps
from train.setup.recipe import Recipe, find_recipe, read_values
from train.setup.starting_adapter import with_shape_of_init
from train.tracking.throughput import PARTS


@dataclass(frozen=True)
class EntryPoint:
    """The main function of a training script, which can be sent to a process that is started."""

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
            values = read_values(path, keys)
            method = method_of(path, values, self.name)
        with command_line(method.without_hub):
            train = partial(run, method, command=launch_command(script, argv))
            if arguments.random_weights:
                keys += keys_of_random_weights(path, values)
                values = read_values(path, keys)
            if arguments.dry_run is None:
                train(load_recipe(method, path, keys, values))
            else:
                Rehearsal(train, method, path, keys, arguments.dry_run).run()


def run(method: type[Method], recipe: Recipe, *, command: str) -> None:
    """Train a judge, calibrate it, and report on its test split."""
    splits = method.read_rows(recipe)
    overlaps = check_overlaps(splits, recipe.data)
    recipe = with_shape_of_init(recipe)
    training = method(recipe, splits)
    hashes = {name: file_sha256(path) for name, path in recipe.files.items()}
    check_run_folder(recipe.run.output, run_identity(recipe, None, hashes))

    accelerator = make_accelerator(recipe.run)
    with PARTS.measured("load"):
        backbone = load_backbone(
            recipe.backbone,
            dtype=recipe.run.dtype,
            device=accelerator.device,
            quantization=recipe.run.quantization,
            held_on=first_device(accelerator),
        )
    backbone = backbone.with_pixels(recipe.run.min_pixels, recipe.run.max_pixels)
    encoder = Encoder(backbone, recipe.run.response_budget)
    trainer = training.fit(encoder, accelerator, hashes)
    finish_run(trainer, training.splits, hashes, overlaps, method.script, command)


def finish_run(
    trainer: BaseTrainer,
    splits: RunSplits,
    hashes: Mapping[str, str],
    overlaps: Sequence[Overlap],
    script: str,
    command: str,
) -> None:
    """Write the judge of a finished run, calibrate it, measure it, and write its card.

    All processes grade rows for the calibration and for the test, and keep what they graded until
    everything is written; the first one writes. The trainer cannot be used again.
    """
    recipe, rows, progress = trainer.recipe, trainer.rows, trainer.progress
    folder, device = recipe.run.output, trainer.accelerator.device
    processes = Processes.of(trainer.accelerator)
    kept = KeptGrades(folder, processes)
    if processes.is_first:
        adapter = folder / ADAPTER_FILE
        earlier = file_sha256(adapter) if adapter.is_file() else None
        write_judge(recipe, rows.train.encoder.backbone, rows, progress, hashes)
        if file_sha256(adapter) != earlier:  # else it may be a later one, of custos calibrate
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
        write_model_card(result, script, rows)
        announce(result)
    kept.delete()


main = EntryPoint()

if __name__ == "__main__":
    main()
