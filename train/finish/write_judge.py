"""From a finished run to a run folder that a judge is loaded from, with its model card."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import load_file, save_file

from data_prep.splits.manifest import MANIFEST_NAME
from data_prep.splits.overlap import paraphrases_left_out
from evaluation.intervals import wilson_interval
from evaluation.report.markdown import table, with_interval
from evaluation.report.plots import draw_learning_curve
from judging.card import CARD_FILE, JudgeCard
from judging.files.atomic import atomic_path, atomic_write, write_text
from judging.files.records import write_json
from judging.fingerprint import package_versions
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE, MAGNITUDE
from judging.models.attention import describe_attention
from judging.models.backbones import Backbone
from judging.models.device_dtype import computed_in
from judging.questions import write_question_hashes
from judging.rules.listed_options import options_of
from judging.tasks import get_task
from judging.types import LabelledExample, Mode
from judging.verdicts.notes import KNOWS_NOTHING
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
    """Write the chosen adapter, its card, the resolved recipe and the learning curve.

    Args:
        recipe: Validated recipe.
        backbone: Backbone that was trained on.
        rows: Rows of the run; the judge's card lists the rubrics and modes of those it was trained
            on.
        progress: Progress of the finished run.
        hashes: SHA-256 of every file when it was read, by the name the recipe gives it.
    """
    folder = recipe.run.output
    best = best_folder(folder, int(progress.chosen["step"]))
    _write_adapter(folder, best, backbone, rounded=recipe.run.precision == "bf16")
    if backbone.reads_pictures:
        backbone.processor.image_processor.save_pretrained(folder)
    card = JudgeCard.for_rubrics(
        backbone,
        _rubrics(rows.train),
        recipe.run.response_budget,
        _modes(rows.train),
        listed_options=any(map(options_of, rows.train.examples)),
    )
    write_json(folder / CARD_FILE, card.model_dump(mode="json"))
    _write_recipe(folder, recipe, backbone, hashes)
    seen = chain(rows.train.examples, rows.val.examples)
    write_question_hashes(folder, seen, recipe.adapter.init_folder)
    draw_learning_curve(progress.history, folder / "learning_curve.png")
    write_json(folder / "history.json", progress.history)


def _write_adapter(folder: Path, best: Path, backbone: Backbone, *, rounded: bool) -> None:
    """Write the weights in the precision they are served in, and their configuration."""
    weights = load_file(best / ADAPTER_FILE)
    if rounded:
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


def _rubrics(rows: Rows) -> dict[str, tuple[str, ...]]:
    rubrics: dict[str, list[str]] = {}
    for rubric in rows.by_rubric():
        task, _, name = rubric.partition("/")
        rubrics.setdefault(task, []).append(name)
    return {task: tuple(sorted(names)) for task, names in rubrics.items()}


def _modes(rows: Rows) -> dict[str, tuple[Mode, ...]]:
    """Return the modes that each rubric was trained for, the one of most rows first."""
    return {rubric: tuple(rows.modes(indices)) for rubric, indices in rows.by_rubric().items()}


def _write_recipe(
    folder: Path, recipe: Recipe, backbone: Backbone, hashes: Mapping[str, str]
) -> None:
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


METRICS = ("accuracy", "kappa", "ece")
FEW_ROWS = 20
"""A label with fewer training rows is named among what the judge has hardly seen."""


def write_model_card(result: RunResult, script: str, watched: Mapping[str, Rows]) -> None:
    """Write the run folder's ``README.md``.

    Args:
        result: The finished run.
        script: Name of the training script.
        watched: Rows of every earlier stage, by name.
    """
    recipe = result.recipe
    folder = recipe.run.output
    resolved = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
    packages = resolved["provenance"]["packages"]
    stop = early_stop_line(result.progress, recipe.run.patience)
    lines = [
        f"# {folder.name}",
        "",
        f"LoRA judge on `{card['backbone']}` for "
        + ", ".join(f"{task} ({', '.join(names)})" for task, names in card["tasks"].items())
        + ".",
        "",
        *([f"**{KNOWS_NOTHING.capitalize()}.**", ""] if card["random_weights"] else []),
        *_measured(result),
        "## Data",
        "",
        *_data(result),
        "## Selection",
        "",
        *(f"- {line}" for line in selection_lines(result)),
        *([f"- {stop}"] if stop else []),
        "",
        *watched_table(result.progress, watched),
        "## Limits",
        "",
        *(f"- {line}" for line in _limits(result.splits.train, card["tasks"])),
        "",
        "## Repeat",
        "",
        "```",
        f"accelerate launch train/{script}.py --config {folder}/recipe.yaml",
        "```",
        "",
        f"Seed {recipe.run.seed}; versions: "
        + ", ".join(f"{name} {version}" for name, version in packages.items())
        + ".",
        "",
    ]
    write_text(folder / "README.md", "\n".join(lines))


def _measured(result: RunResult) -> list[str]:
    """Return the figures on the test split; rows count as held out only if no split knows them."""
    report, lines = result.report, []
    if report:
        overlaps = overlap_lines(result)
        num_items = report["metrics"]["accuracy"]["n"]
        items = f"{num_items} {'items' if overlaps else 'held-out items'}"
        lines += [f"Measured on {items}, 95 % intervals clustered by question:", ""]
        lines += [_metrics_table(report), ""]
    else:
        lines += ["Not measured on a test split.", ""]
    if result.learned:
        lines += [f"Against the start: {learned_line(result.learned)}.", ""]
    return lines


def _metrics_table(report: Mapping[str, Any]) -> str:
    graders = {"this judge": report["metrics"], **report["baselines"]}
    rows = [
        (name, *(with_interval(metrics.get(metric)) for metric in METRICS))
        for name, metrics in graders.items()
    ]
    return table(("judge", "accuracy", "kappa", "ECE"), rows)


def _data(result: RunResult) -> list[str]:
    recipe, splits = result.recipe, result.splits
    data = recipe.data
    files = {"train": data.train, "val": (data.val,), "cal": (data.cal,), "test": (data.test,)}
    rows_of = {"train": splits.train, "val": splits.val, "cal": splits.cal, "test": splits.test}
    rows = [
        (
            name,
            ", ".join(_file(path, result.hashes) for path in files[name] if path),
            len(examples),
            len({row.group or row.question for row in examples}),
            ", ".join(f"{label} {n}" for label, n in _label_counts(examples)),
        )
        for name, examples in rows_of.items()
        if examples
    ]
    overlaps = overlap_lines(result)
    return [
        table(("split", "file (SHA-256)", "rows", "questions", "labels"), rows),
        "",
        *_mapping(recipe),
        *_origin(path for paths in files.values() for path in paths if path),
        *(
            [f"- overlap: {line}" for line in overlaps]
            or ["No two splits share a row, a question or a near-duplicate of one."]
        ),
        *(
            [f"- {note}"]
            if (note := paraphrases_left_out({n: r for n, r in rows_of.items() if r}))
            else []
        ),
        "",
    ]


def _file(path: Path, hashes: Mapping[str, str]) -> str:
    """Return a file with its hash; a data set of the hub has none."""
    sha256 = hashes.get(str(path))
    return f"{path} ({sha256[:12]})" if sha256 else str(path)


def _mapping(recipe: Recipe) -> list[str]:
    mapping = recipe.data.model_dump(mode="json", exclude_none=True).get("mapping")
    if not mapping:
        return []
    return [f"Columns and labels were mapped: `{json.dumps(mapping, ensure_ascii=False)}`.", ""]


def _origin(files: Iterable[Path]) -> list[str]:
    """Return the commands that made the files, and from what, as their manifests say."""
    lines = []
    for folder in dict.fromkeys(path.parent for path in files):
        try:
            manifest = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
            sources = ", ".join(f"{name} ({sha[:12]})" for name, sha in _hashed(manifest["source"]))
            lines += [
                f"`{folder}` was made by `{manifest['command']}` from {sources or 'nothing'}."
            ]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no manifest, or another program's
    return [*lines, ""] if lines else []


def _hashed(source: Any) -> Iterator[tuple[str, str]]:
    """Yield name and SHA-256 of every file that a manifest's source names, at any depth."""
    if isinstance(source, dict) and {"name", "sha256"} <= source.keys():
        yield str(source["name"]), str(source["sha256"])
    elif isinstance(source, dict | list):
        for part in source.values() if isinstance(source, dict) else source:
            yield from _hashed(part)


def _limits(train: Sequence[LabelledExample], tasks: Mapping[str, Sequence[str]]) -> list[str]:
    rubrics = [f"{task} ({', '.join(names)})" for task, names in tasks.items()]
    lines = [f"It was trained for {', '.join(rubrics)} and for nothing else."]
    few = [f"{label} {n}" for label, n in _label_counts(train) if n < FEW_ROWS]
    if few:
        lines.append(f"Labels with fewer than {FEW_ROWS} training rows: {', '.join(few)}.")
    if not any(get_task(row.task).pictures(row) for row in train):
        lines.append("It has seen no pictures in this training.")
    return lines


def _label_counts(examples: Sequence[LabelledExample]) -> list[tuple[str, int]]:
    return Counter(example.label for example in examples).most_common()


def watched_table(progress: Progress, watched: Mapping[str, Rows]) -> list[str]:
    """Tabulate accuracy on the rows of earlier stages, before training and with the chosen adapter.

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
        (name, len(rows), cell(name, start), cell(name, progress.chosen))
        for name, rows in watched.items()
    ]
    if not rows:
        return []
    title = "Validation rows of earlier stages, before this one and after (95 % Wilson intervals):"
    return [title, "", table(("", "n", "accuracy before", "after"), rows), ""]
