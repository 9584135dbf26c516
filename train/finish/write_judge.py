"""From a finished run to a run folder that a judge is loaded from, with its model card."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import load_file, save_file

from data_prep.splits.manifest import MANIFEST_NAME
from data_prep.splits.overlap import paraphrases_left_out
from evaluation.intervals import wilson_interval
from evaluation.report.markdown import markdown_table, with_interval
from evaluation.report.plots import draw_learning_curve
from judging.files.atomic import atomic_path, atomic_write, write_text
from judging.files.questions import write_question_hashes
from judging.files.records import write_json
from judging.fingerprint import package_versions
from judging.judge.card import CARD_FILE, JudgeCard
from judging.judge.notes import KNOWS_NOTHING
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE, MAGNITUDE
from judging.models.attention import describe_attention
from judging.models.backbones import Backbone
from judging.models.devices import computed_in
from judging.rules.answer_options import options_of
from judging.tasks import get_task
from judging.types import LabelledExample, Mode
from train.finish.report import RunResult, learned_line, overlap_lines, selection_lines
from train.loop.checkpoint import best_folder
from train.loop.progress import Progress, early_stop_line
from train.rows.rows import IndexedSplits, Rows
from train.setup.recipe import Recipe
from train.tracking.parts import PARTS


@PARTS.measured("saving")
def write_judge(
    recipe: Recipe,
    backbone: Backbone,
    rows: IndexedSplits,
    progress: Progress,
    hashes: Mapping[str, str],
) -> None:
    """Write the chosen adapter, its card, the resolved recipe and the learning curve."""
    folder = recipe.run.output
    best = best_folder(folder, int(progress.chosen["step"]))
    weights = load_file(best / ADAPTER_FILE)
    if recipe.run.precision == "bf16":  # as it is served
        weights = {
            # A norm that is rounded would scale its whole row (DoRA).
            name: tensor if MAGNITUDE in name else tensor.to(torch.bfloat16)
            for name, tensor in weights.items()
        }
    # Readable for all: a service is another user.
    with atomic_path(folder / ADAPTER_FILE) as partial:
        save_file(weights, partial, metadata={"format": "pt"})
    config = json.loads((best / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    # Instead of the cache path of the machine it was trained on.
    write_json(folder / ADAPTER_CONFIG, {**config, "base_model_name_or_path": backbone.name})
    if backbone.reads_pictures:
        backbone.processor.image_processor.save_pretrained(folder)
    rubrics: dict[str, list[str]] = {}
    modes: dict[str, tuple[Mode, ...]] = {}
    for rubric, indices in rows.train.by_rubric().items():
        task, _, name = rubric.partition("/")
        rubrics.setdefault(task, []).append(name)
        modes[rubric] = tuple(rows.train.modes(indices))
    card = JudgeCard.for_rubrics(
        backbone,
        {task: tuple(sorted(names)) for task, names in rubrics.items()},
        recipe.run.response_budget,
        modes,
        listed_options=any(map(options_of, rows.train.examples)),
    )
    write_json(folder / CARD_FILE, card.model_dump(mode="json"))
    provenance = {
        "sha256": dict(hashes),
        "backbone_version": backbone.version,
        "arithmetic": computed_in(backbone.model),
        "attention": describe_attention(backbone.model),
        "packages": package_versions(),
    }
    with atomic_write(folder / "recipe.yaml") as file:
        resolved = {**recipe.model_dump(mode="json"), "provenance": provenance}
        yaml.safe_dump(resolved, file, sort_keys=False)
    seen = chain(rows.train.examples, rows.val.examples)
    write_question_hashes(folder, seen, recipe.adapter.init_folder)
    draw_learning_curve(progress.history, folder / "learning_curve.png")
    write_json(folder / "history.json", progress.history)


METRICS = ("accuracy", "kappa", "ece")
FEW_ROWS = 20
"""A label with fewer training rows is named among what the judge has hardly seen."""


def write_model_card(result: RunResult, script: str, watched: Mapping[str, Rows]) -> None:
    """Write the run folder's ``README.md``: what went in, and what was measured; nothing else."""
    recipe, report = result.recipe, result.report
    folder = recipe.run.output
    resolved = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
    packages = resolved["provenance"]["packages"]
    rubrics = ", ".join(f"{task} ({', '.join(names)})" for task, names in card["tasks"].items())
    stop = early_stop_line(result.progress, recipe.run.patience)
    overlaps = overlap_lines(result)
    measured = ["Not measured on a test split."]
    if report:
        # Rows count as held out only if no split knows them.
        items = f"{report['metrics']['accuracy']['n']} {'items' if overlaps else 'held-out items'}"
        graders = {"this judge": report["metrics"], **report["baselines"]}
        rows = [
            (name, *(with_interval(metrics.get(metric)) for metric in METRICS))
            for name, metrics in graders.items()
        ]
        measured = [
            *(f"Measured on {items}, 95 % intervals clustered by question:", ""),
            markdown_table(("judge", "accuracy", "kappa", "ECE"), rows),
        ]
    if result.learned:
        measured += ["", f"Against the start: {learned_line(result.learned)}."]
    limits = [f"It was trained for {rubrics} and for nothing else."]
    train = result.splits.train
    if few := [f"{label} {n}" for label, n in _label_counts(train) if n < FEW_ROWS]:
        limits.append(f"Labels with fewer than {FEW_ROWS} training rows: {', '.join(few)}.")
    if not any(get_task(row.task).pictures(row) for row in train):
        limits.append("It has seen no pictures in this training.")
    lines = [
        *(f"# {folder.name}", "", f"LoRA judge on `{card['backbone']}` for {rubrics}.", ""),
        *([f"**{KNOWS_NOTHING.capitalize()}.**", ""] if card["random_weights"] else []),
        *(*measured, "", "## Data", "", *_data(result, overlaps)),
        *("## Selection", "", *(f"- {line}" for line in selection_lines(result))),
        *([f"- {stop}"] if stop else []),
        *("", *watched_table(result.progress, watched)),
        *("## Limits", "", *(f"- {line}" for line in limits), ""),
        *("## Repeat", "", "```"),
        f"accelerate launch train/{script}.py --config {folder}/recipe.yaml",
        *("```", ""),
        f"Seed {recipe.run.seed}; versions: "
        + ", ".join(f"{name} {version}" for name, version in packages.items())
        + ".",
        "",
    ]
    write_text(folder / "README.md", "\n".join(lines))


def _data(result: RunResult, overlaps: Sequence[str]) -> list[str]:
    data, hashes = result.recipe.data, result.hashes
    files = {"train": data.train, "val": (data.val,), "cal": (data.cal,), "test": (data.test,)}
    splits = {name: rows for name, rows in result.splits.by_name.items() if rows}

    def shown(path: Path) -> str:
        sha256 = hashes.get(str(path))  # a data set of the hub has none
        return f"{path} ({sha256[:12]})" if sha256 else str(path)

    rows = [
        (
            name,
            ", ".join(shown(path) for path in files[name] if path),
            len(examples),
            len({row.group or row.asked for row in examples}),
            ", ".join(f"{label} {n}" for label, n in _label_counts(examples)),
        )
        for name, examples in splits.items()
    ]
    lines = [markdown_table(("split", "file (SHA-256)", "rows", "questions", "labels"), rows), ""]
    if mapping := data.model_dump(mode="json", exclude_none=True).get("mapping"):
        text = json.dumps(mapping, ensure_ascii=False)
        lines += [f"Columns and labels were mapped: `{text}`.", ""]
    origins = []
    for folder in dict.fromkeys(path.parent for paths in files.values() for path in paths if path):
        with suppress(OSError, ValueError, KeyError, TypeError):  # no manifest of ours
            manifest = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
            sources = ", ".join(f"{name} ({sha[:12]})" for name, sha in _hashed(manifest["source"]))
            command = manifest["command"]
            origins.append(f"`{folder}` was made by `{command}` from {sources or 'nothing'}.")
    lines += [*origins, ""] if origins else []
    none = "No two splits share a row, a question or a near-duplicate of one."
    lines += [f"- overlap: {line}" for line in overlaps] or [none]
    if note := paraphrases_left_out(splits):
        lines.append(f"- {note}")
    return [*lines, ""]


def _hashed(source: Any) -> Iterator[tuple[str, str]]:
    """Yield name and SHA-256 of every file that a manifest's source names, at any depth."""
    if isinstance(source, dict) and {"name", "sha256"} <= source.keys():
        yield str(source["name"]), str(source["sha256"])
    elif isinstance(source, dict | list):
        for part in source.values() if isinstance(source, dict) else source:
            yield from _hashed(part)


def _label_counts(examples: Sequence[LabelledExample]) -> list[tuple[str, int]]:
    return Counter(example.label for example in examples).most_common()


def watched_table(progress: Progress, watched: Mapping[str, Rows]) -> list[str]:
    """Tabulate accuracy on rows of earlier stages, before training and with the chosen adapter.

    There are 95 % Wilson intervals, and no lines where nothing was watched.
    """

    def cell(name: str, entry: Mapping[str, float]) -> str:
        rate, n = entry[f"{name}_accuracy"], len(watched[name])
        return with_interval({"value": rate, **wilson_interval(rate * n, n)._asdict()})

    start = next(entry for entry in progress.history if "val_nll" in entry)
    rows = [
        (name, len(rows), cell(name, start), cell(name, progress.chosen))
        for name, rows in watched.items()
    ]
    if not rows:
        return []
    title = "Validation rows of earlier stages, before this one and after (95 % Wilson intervals):"
    return [title, "", markdown_table(("", "n", "accuracy before", "after"), rows), ""]
