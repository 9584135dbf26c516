"""The model card of a run, ``README.md``: what went in, and what was measured; nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from data_prep.splits.manifest import MANIFEST_NAME
from data_prep.splits.overlap import paraphrases_left_out
from evaluation.intervals import wilson_interval
from evaluation.report.markdown import markdown_table, with_interval
from judging.files.atomic import write_text
from judging.judge.card import CARD_FILE
from judging.judge.notes import KNOWS_NOTHING
from judging.tasks import get_task
from judging.types import LabelledExample
from train.finish.result import RunResult, learned_line, overlap_lines, selection_lines
from train.loop.progress import Progress, early_stop_line
from train.rows.rows import Rows
from train.setup.recipe import Recipe

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
    return markdown_table(("judge", "accuracy", "kappa", "ECE"), rows)


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
        markdown_table(("split", "file (SHA-256)", "rows", "questions", "labels"), rows),
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
    return [title, "", markdown_table(("", "n", "accuracy before", "after"), rows), ""]
