"""The end of a run on all its processes: from the last step to a judge with its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from data_prep.splits.overlap import Overlap
from judging.judge import CALIBRATION_FILE
from train.dry_run.parts import PARTS
from train.finish.calibrate import calibrate
from train.finish.finished_trainer import FinishedTrainer
from train.finish.kept_grades import KeptGrades
from train.finish.model_card import write_model_card
from train.finish.processes import Processes
from train.finish.report import announce, report_test
from train.finish.result import RunResult
from train.finish.start import grade_start
from train.finish.write_judge import write_judge
from train.setup.data import RunSplits


def finish_run(
    trainer: FinishedTrainer,
    splits: RunSplits,
    hashes: Mapping[str, str],
    overlaps: Sequence[Overlap],
    script: Path,
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
        script: Path of the training script.
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
        write_model_card(result, script.name, rows.watched)
        announce(result)
    kept.delete()
