"""From a finished run to a judge others can load: adapter, calibration, report, card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from rich.console import Console
from safetensors.torch import load_file, save_file

from evaluation.evaluate import evaluate_judge, summary_table
from evaluation.intervals import wilson_interval
from evaluation.report.markdown import table, with_interval
from evaluation.report.pictures import plot_learning_curve
from evaluation.report.report import write_report
from judging.calibration import Calibration, CalibrationSet, calibration_key
from judging.calibration_fit import fit_score_calibration, fit_type_calibration
from judging.card import CARD_FILE, JudgeCard
from judging.errors import CustosError
from judging.fingerprint import package_versions
from judging.judge import CALIBRATION_FILE, Judge
from judging.models.adapters import ADAPTER_FILE
from judging.models.backbones import Backbone
from judging.models.device_dtype import computed_in
from judging.records import atomic_write, write_json
from judging.tasks import get_task
from judging.types import LabelledExample
from train.loop.batches import Rows
from train.loop.checkpoint import best_folder
from train.loop.trainer import Progress
from train.setup.recipe import Recipe


def write_judge(
    recipe: Recipe, backbone: Backbone, rows: Rows, progress: Progress, sha256: Mapping[str, str]
) -> None:
    """Write the best adapter, its card, the resolved recipe and the learning curve.

    Adapter weights are stored in the precision they are served in.

    Args:
        recipe: Validated recipe.
        backbone: What was trained on.
        rows: Training rows.
        progress: Of the finished run.
        sha256: Hash of every file when it was read, by path.
    """
    folder = recipe.run.output
    best = best_folder(folder, int(progress.best["step"]))
    weights = load_file(best / ADAPTER_FILE)
    if recipe.run.precision == "bf16":
        weights = {name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}
    partial = folder / f".{ADAPTER_FILE}.partial"
    save_file(weights, partial, metadata={"format": "pt"})
    partial.chmod(0o644)  # safetensors lets the owner alone read it; a service runs as another user
    partial.rename(folder / ADAPTER_FILE)
    config = json.loads((best / "adapter_config.json").read_text(encoding="utf-8"))
    # Not the cache path of the machine it was trained on.
    write_json(folder / "adapter_config.json", {**config, "base_model_name_or_path": backbone.name})
    backbone.processor.image_processor.save_pretrained(folder)

    rubrics: dict[str, list[str]] = {}
    for rubric in dict.fromkeys(row.rubric for row in rows.rows):
        task, _, name = rubric.partition("/")
        rubrics.setdefault(task, []).append(name)
    card = JudgeCard.for_rubrics(
        backbone,
        {task: tuple(sorted(names)) for task, names in rubrics.items()},
        recipe.run.response_budget,
    )
    write_json(folder / CARD_FILE, card.model_dump(mode="json"))
    with atomic_write(folder / "recipe.yaml") as file:
        provenance = {
            "sha256": dict(sha256),
            "backbone_version": backbone.version,
            "arithmetic": computed_in(backbone.model),
            "packages": package_versions(),
        }
        resolved = {**recipe.model_dump(mode="json"), "provenance": provenance}
        yaml.safe_dump(resolved, file, sort_keys=False)
    plot_learning_curve(progress.history, folder / "learning_curve.png")
    write_json(folder / "history.json", progress.history)


def calibrate(folder: Path, examples: Sequence[LabelledExample]) -> CalibrationSet | None:
    """Fit ``calibration.json`` for every rubric the calibration split covers with all its labels.

    The judge is loaded as it will be served, so rounding and merging are calibrated too.
    """
    (folder / CALIBRATION_FILE).unlink(missing_ok=True)
    judge = Judge.load(str(folder))
    by_key: dict[str, list[LabelledExample]] = {}
    for example in examples:
        task = get_task(example.task)
        if task.rule(example) is None:
            by_key.setdefault(calibration_key(task, example), []).append(example)
    scores: dict[str, Calibration] = {}
    types: dict[str, Calibration] = {}
    for key, group in by_key.items():
        task = get_task(group[0].task)
        labels = task.labels(task.rubric(group[0]))
        targets = np.array([labels.index(example.label) for example in group])
        logprobs = judge.logprobs(group)
        try:
            scores[key] = fit_score_calibration(logprobs, targets, labels)
        except CustosError as error:
            Console(stderr=True).print(f"{key} stays uncalibrated: {error}", markup=False)
            continue
        try:
            if given := fit_type_calibration(logprobs, targets, labels):
                types[key] = given
        except CustosError as error:
            said = f"{key}: error types stay uncalibrated: {error}"
            Console(stderr=True).print(said, markup=False)
    if not scores:
        return None
    calibration = CalibrationSet(judge=judge.identity, rubrics=scores, error_types=types)
    write_json(folder / CALIBRATION_FILE, calibration.model_dump())
    return calibration


def report_test(
    folder: Path, examples: Sequence[LabelledExample], command: str, seed: int
) -> dict[str, Any]:
    """Grade the test split with the finished judge and write its report."""
    report, _ = evaluate_judge(Judge.load(str(folder)), examples, command=command, seed=seed)
    write_report(report, folder)
    return report


def watched_table(progress: Progress, sizes: Mapping[str, int]) -> list[str]:
    """Accuracy on each earlier stage's rows before training and with the adapter chosen.

    Args:
        progress: Of the finished run.
        sizes: Rows of every earlier stage watched, by name.

    Returns:
        Lines of Markdown with 95 % Wilson intervals; none where nothing was watched.
    """

    def cell(name: str, entry: Mapping[str, float]) -> str:
        rate, n = entry[f"{name}_accuracy"], sizes[name]
        return with_interval({"value": rate, **wilson_interval(rate * n, n)._asdict()})

    start = next(entry for entry in progress.history if "val_nll" in entry)
    rows = [(name, n, cell(name, start), cell(name, progress.best)) for name, n in sizes.items()]
    if not rows:
        return []
    said = "Validation rows of earlier stages, before this one and after (95 % Wilson intervals):"
    return [said, "", table(("", "n", "accuracy before", "after"), rows), ""]


def write_model_card(
    folder: Path, recipe: Recipe, report: dict[str, Any], script: str, watched: Sequence[str]
) -> None:
    """Write the run's README from what was measured, nothing else.

    Args:
        folder: Run folder.
        recipe: Its recipe.
        report: Of the test split.
        script: File name of the training script.
        watched: Lines on what was watched beside.
    """
    resolved = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
    lines = [
        f"# {folder.name}",
        "",
        f"LoRA judge on `{card['backbone']}` for "
        + ", ".join(f"{task} ({', '.join(names)})" for task, names in card["tasks"].items())
        + ".",
        "",
        f"Measured on {report['n']} held-out items, 95 % intervals clustered by question:",
        "",
        "| judge | accuracy | kappa | ECE |",
        "|---|---|---|---|",
        _card_line("this judge", report["metrics"]),
        *(_card_line(name, metrics) for name, metrics in report["baselines"].items()),
        "",
        *watched,
        "```",
        f"accelerate launch train/{script} --config {folder}/recipe.yaml",
        "```",
        "",
        f"Seed {recipe.run.seed}; hashes of its files and versions in `recipe.yaml`: "
        + ", ".join(f"{k} {v}" for k, v in resolved["provenance"]["packages"].items())
        + ".",
        "",
    ]
    with atomic_write(folder / "README.md") as file:
        file.write("\n".join(lines))


def _card_line(name: str, metrics: dict[str, Any]) -> str:
    def cell(metric: str) -> str:
        entry = metrics.get(metric)
        if not entry or entry["value"] is None:
            return "-"
        return f"{entry['value']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}]"

    return f"| {name} | {cell('accuracy')} | {cell('kappa')} | {cell('ece')} |"


def announce(folder: Path, report: dict[str, Any] | None) -> None:
    """Say where the judge lies and how to use it."""
    console = Console()
    if report:
        console.print(summary_table(folder.name, report))
        console.print(f"n={report['n']}, 95 % intervals by question; see {folder / 'report.md'}")
    console.print(f"judge written to {folder}; try: custos serve --judge qs={folder}")
