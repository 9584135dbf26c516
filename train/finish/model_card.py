"""The model card of a run, ``README.md``: what was measured, nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from evaluation.intervals import wilson_interval
from evaluation.report.markdown import table, with_interval
from judging.card import CARD_FILE
from judging.records import atomic_write
from train.loop.batches import Rows
from train.loop.trainer import Progress
from train.setup.recipe import Recipe

METRICS = ("accuracy", "kappa", "ece")


def write_model_card(
    recipe: Recipe,
    report: Mapping[str, Any] | None,
    script: str,
    progress: Progress,
    watched: Mapping[str, Rows],
) -> None:
    """Write the run folder's ``README.md``, if there is a report.

    Args:
        recipe: Recipe of the run.
        report: Report on the test split; ``None`` if the recipe has none.
        script: File name of the training script.
        progress: Progress of the finished run.
        watched: Rows of every earlier stage, by name.
    """
    if report is None:
        return
    folder = recipe.run.output
    resolved = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
    packages = resolved["provenance"]["packages"]
    lines = [
        f"# {folder.name}",
        "",
        f"LoRA judge on `{card['backbone']}` for "
        + ", ".join(f"{task} ({', '.join(names)})" for task, names in card["tasks"].items())
        + ".",
        "",
        f"Measured on {report['n']} held-out items, 95 % intervals clustered by question:",
        "",
        _metrics_table(report),
        "",
        *watched_table(progress, watched),
        "```",
        f"accelerate launch train/{script} --config {folder}/recipe.yaml",
        "```",
        "",
        f"Seed {recipe.run.seed}; hashes of its files and versions in `recipe.yaml`: "
        + ", ".join(f"{name} {version}" for name, version in packages.items())
        + ".",
        "",
    ]
    with atomic_write(folder / "README.md") as file:
        file.write("\n".join(lines))


def _metrics_table(report: Mapping[str, Any]) -> str:
    graders = {"this judge": report["metrics"], **report["baselines"]}
    rows = [
        (name, *(with_interval(metrics.get(metric)) for metric in METRICS))
        for name, metrics in graders.items()
    ]
    return table(("judge", "accuracy", "kappa", "ECE"), rows)


def watched_table(progress: Progress, watched: Mapping[str, Rows]) -> list[str]:
    """Tabulate accuracy on the rows of earlier stages, before training and with the best adapter.

    Args:
        progress: Progress of the finished run.
        watched: Rows of every earlier stage, by name.

    Returns:
        Lines of Markdown with 95 % Wilson intervals; none where nothing was watched.
    """

    def cell(name: str, entry: Mapping[str, float]) -> str:
        rate, n = entry[f"{name}_accuracy"], len(watched[name])
        return with_interval({"value": rate, **wilson_interval(rate * n, n)._asdict()})

    start = next(entry for entry in progress.history if "val_nll" in entry)
    rows = [
        (name, len(rows), cell(name, start), cell(name, progress.best))
        for name, rows in watched.items()
    ]
    if not rows:
        return []
    title = "Validation rows of earlier stages, before this one and after (95 % Wilson intervals):"
    return [title, "", table(("", "n", "accuracy before", "after"), rows), ""]
