"""From a finished run to its judge: run folder, model card, report on the test split."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from rich.console import Console
from safetensors.torch import load_file, save_file

from data_prep.splits.manifest import MANIFEST_NAME
from data_prep.splits.overlap import Overlap, paraphrases_left_out
from evaluation.estimate import paired_accuracies
from evaluation.intervals import clustered_rate, wilson_interval
from evaluation.outcomes import NothingScored, full_label, question_numbers
from evaluation.ranking.favour import family_of
from evaluation.report.evaluate import (
    grade_examples,
    resolve_examples,
    seen_data,
    uncalibrated_verdicts,
)
from evaluation.report.plots import draw_learning_curve
from evaluation.report.report import build_report, write_report
from evaluation.report.text import markdown_table, with_interval
from judging.errors import CustosError
from judging.files.atomic import atomic_path, atomic_write, write_text
from judging.files.questions import count_trained_on, write_question_hashes
from judging.files.records import write_json
from judging.fingerprint import package_versions
from judging.judge import Judge
from judging.judge.card import CARD_FILE, JudgeCard, read_card
from judging.judge.notes import KNOWS_NOTHING
from judging.models.adapters import ADAPTER_CONFIG, ADAPTER_FILE, MAGNITUDE
from judging.models.attention import describe_attention
from judging.models.backbones import Backbone
from judging.models.devices import computed_in
from judging.rules.answer_options import options_of
from judging.tasks import get_task
from judging.types import LabelledExample, Verdict
from train.finish.grading import KeptChunk, KeptGrades
from train.loop.checkpoint import (
    Progress,
    best_folder,
    early_stop_line,
    selection_key,
    validations_in,
)
from train.rows.data import ReplaySection, RunSplits
from train.rows.rows import IndexedSplits, Rows
from train.setup.recipe import Recipe
from train.setup.run_log import GRADE_VARIABLE, RUN_LOG
from train.tracking.throughput import PARTS

WIDEST = 0.1
"""Half the width of the interval of an accuracy above which steps are chosen by chance."""
ENOUGH_QUESTIONS = 100
"""Questions, with a row each, whose interval is no wider: (1.96 / 0.1)^2 / 4, in round tens."""


@dataclass(frozen=True)
class RunResult:
    """A finished run: what went in, what was chosen, and what was measured."""

    recipe: Recipe
    splits: RunSplits
    hashes: Mapping[str, str]
    """SHA-256 of every file that was read, by the name the recipe gives it."""
    overlaps: Sequence[Overlap]
    """Overlaps between splits that the recipe allows."""
    progress: Progress
    report: Mapping[str, Any] | None = None
    """Report on the test split; ``None`` without one."""

    @property
    def known_to_start(self) -> int:
        """Count the test rows that ask what the start was trained on or chosen by.

        Judges that do not say what they were trained on, such as the shipped ones, count as 0.
        """
        folder, rows = self.recipe.adapter.init_folder, self.splits.test
        return (count_trained_on(folder, rows) or 0) if folder and rows else 0

    @property
    def learned(self) -> Mapping[str, Any] | None:
        """Compare the accuracy with the start's, on test rows or else on validation rows.

        ``None`` if the run chose its start, or has no accuracy.
        """
        if self.progress.chosen["step"] == 0:
            return None
        if self.report:
            of_test: Mapping[str, Any] = self.report["against_start"]
            return of_test
        right, at_start = self.progress.right or (), self.progress.right_at_start or ()
        known = [
            each
            for each in zip(self.splits.val, right, at_start, strict=False)
            if each[1] is not None and each[2] is not None
        ]
        if not known:
            return None
        rows, now, before = zip(*known, strict=True)
        return against_start("validation", rows, now, before, self.recipe)


def selection_lines(result: RunResult) -> list[str]:
    """Say which step became the judge and why, and warn where chance may have chosen it."""
    progress, run = result.progress, result.recipe.run
    step, validations = int(progress.chosen["step"]), validations_in(progress.history)
    if step == 0:
        chosen = "no step beat the start: the judge in this folder is the one it started from"
    elif run.select == "last":
        best = int(max(validations, key=selection_key)["step"])
        other = "" if best == step else f"; step {best} validated best"
        chosen = f"step {step}, the last one (run.select=last){other}"
    else:
        chosen = f"step {step} of {progress.step}, the best of {len(validations)} validations"
    of_rows = zip(progress.right or (), result.splits.val, strict=False)
    decided = [(right, row) for right, row in of_rows if right is not None]
    if not decided:
        nll = f"nll {progress.chosen['val_nll']:.3f} on {len(result.splits.val)} rows"
        return [f"{chosen} (validation: {nll})"]
    right = np.array([right for right, _ in decided], dtype=np.float64)
    low, high = clustered_rate(right, question_numbers([row for _, row in decided]))
    interval, half = f"[{low:.3f}, {high:.3f}]", (high - low) / 2
    accuracy = f"accuracy {right.mean():.3f} {interval} on {len(decided)} rows"
    lines = [f"{chosen} (validation: {accuracy})"]
    if half > WIDEST and run.select == "best":
        lines.append(
            f"warning: {len(decided)} validation rows are too few to choose a step by: their "
            f"accuracy is sure to ±{half:.2f} only; rows on {ENOUGH_QUESTIONS} "
            f"different questions would make it ±{WIDEST:.2f}"
        )
    return lines


def against_start(
    split: str,
    examples: Sequence[LabelledExample],
    right: Sequence[bool],
    before: Sequence[bool],
    recipe: Recipe,
) -> dict[str, Any]:
    """Compare the finished judge with its start on rows of ``test`` or ``validation``.

    To the figures of :func:`~evaluation.estimate.paired_accuracies` come ``split``, ``start`` and
    ``chosen_on``, whether the rows also chose the step.
    """
    start = str(recipe.adapter.init or f"{recipe.backbone}, untrained")
    chosen_on = split == "validation" and recipe.run.select == "best"
    paired = paired_accuracies(right, before, question_numbers(examples), seed=recipe.run.seed)
    return {"split": split, "start": start, "chosen_on": chosen_on, **paired}


def learned_line(learned: Mapping[str, Any]) -> str:
    """Say what was learned against the start, in one line."""
    difference = learned["difference"]
    low, high = difference["low"], difference["high"]
    ends = "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
    caution = ", on which the step was chosen" if learned["chosen_on"] else ""
    return (
        f"{learned['split']}: accuracy {with_interval(learned['first'])} against "
        f"{with_interval(learned['second'])} at the start ({learned['start']}): "
        f"{difference['value']:+.3f}{ends}; {learned['n']:,} rows on {learned['clusters']:,} "
        f"questions{caution}, 95 % intervals"
    )


def overlap_lines(result: RunResult) -> list[str]:
    """Describe every overlap of the run's rows that makes its figures better than they are."""
    lines = [overlap.describe() for overlap in result.overlaps]
    if result.known_to_start:
        lines.append(
            f"of {len(result.splits.test or ())} test rows, {result.known_to_start} ask what "
            f"{result.recipe.adapter.init} was trained on or chosen by"
        )
    return lines


@PARTS.measured("grading")
def report_test(
    judge: Judge,
    recipe: Recipe,
    examples: Sequence[LabelledExample],
    start: Mapping[int, Verdict],
    command: str,
    kept: KeptGrades,
) -> dict[str, Any] | None:
    """Grade the test split with the finished judge on all processes; the first writes the report.

    The report has ``against_start`` if there are verdicts of the start. ``None`` without a row that
    the judge can take, and on every process but the first.
    """
    examples = resolve_examples(judge, examples)
    grade = partial(grade_examples, judge)
    was_stopped, started = kept.is_begun("grading"), time.perf_counter()
    verdicts = kept.grade("grading", judge, examples, grade, KeptChunk[Verdict])
    seconds = None if was_stopped else time.perf_counter() - started
    if not kept.processes.is_first:
        return None
    name = "start" if recipe.adapter.init else "zero_shot"
    beside = {name: list(start.values())} if len(start) == len(examples) else {}
    try:
        report = build_report(
            examples,
            verdicts,
            uncalibrated=uncalibrated_verdicts(examples, verdicts)
            if judge.calibration is not None
            else None,
            seen=seen_data(judge.folder, None, examples),
            seconds=seconds,
            command=command,
            references=beside,
            family=family_of(judge.backbone.name),
            seed=recipe.run.seed,
        )
    except NothingScored as error:  # The judge is finished all the same.
        Console(stderr=True).print(f"test split: {error}", markup=False, soft_wrap=True)
        return None
    if start:
        rows = [examples[index] for index in start]
        wanted = [full_label(row) for row in rows]
        # A row without a label is not right.
        right = [full_label(verdicts[i]) == label for i, label in zip(start, wanted, strict=True)]
        before = [full_label(v) == label for v, label in zip(start.values(), wanted, strict=True)]
        report["against_start"] = against_start("test", rows, right, before, recipe)
    write_report(report, recipe.run.output)
    return report


def announce(result: RunResult) -> None:
    """Show what was learned, where the judge is, and the commands that use it."""
    folder, report = result.recipe.run.output, result.report
    lines = [f"warning: {line}" for line in overlap_lines(result)]
    lines += selection_lines(result)
    if result.learned:
        lines.append(learned_line(result.learned))
    if report:
        metrics = report["metrics"]
        figures = ", ".join(
            f"{name.replace('_', ' ')} {with_interval(metrics[name])}"
            for name in ("accuracy", "kappa", "score_accuracy", "type_accuracy")
            if name in metrics
        )
        num_rows = metrics["accuracy"]["n"]
        figures += f" on {num_rows:,} test rows (95 % intervals), see {folder / 'report.md'}"
    else:
        figures = f"no test split, see {folder / 'README.md'}"
    grade = f"custos grade --judge {folder} --in FILE.jsonl --out verdicts.jsonl"
    lines += [
        f"judge: {folder}: {figures}",
        *(f"caution: {caution}" for caution in (report or {}).get("cautions", ())),
        f"next: {os.environ.get(GRADE_VARIABLE, grade)}",
        f"or:   custos serve --judge {folder.name}={folder}",
    ]
    for line in lines:
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
        RUN_LOG.write(line)


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
    modes = rows.train.modes()
    for rubric in modes:
        task, _, name = rubric.partition("/")
        rubrics.setdefault(task, []).append(name)
    card = JudgeCard.for_rubrics(
        backbone,
        {task: tuple(sorted(names)) for task, names in rubrics.items()},
        recipe.run.response_budget,
        modes,
        listed_options=any(map(options_of, rows.train.examples)),
    )
    if start := recipe.adapter.init_folder:
        with suppress(CustosError, OSError):  # an adapter alone, or a card that no judge loads with
            card = card.going_on_from(read_card(start))
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


def write_model_card(result: RunResult, script: str, rows: IndexedSplits) -> None:
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
        figures = [
            (name, *(with_interval(metrics.get(metric)) for metric in METRICS))
            for name, metrics in graders.items()
        ]
        measured = [
            *(f"Measured on {items}, 95 % intervals clustered by question:", ""),
            markdown_table(("judge", "accuracy", "kappa", "ECE"), figures),
        ]
    if result.learned:
        measured += ["", f"Against the start: {learned_line(result.learned)}."]
    limits = [f"It was trained for {rubrics} and for nothing else."]
    kept = {f"{task}/{name}" for task, names in card["tasks"].items() for name in names}
    if kept := kept.difference(rows.train.facts.rubrics):
        limits.append(
            f"Rubrics that {recipe.adapter.init} knew and no training row here has: "
            f"{', '.join(sorted(kept))}. Confidences under them are calibrated only if "
            "calibration rows had them."
        )
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
        *("", *watched_table(result.progress, rows.watched)),
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
    data, hashes, replayed = result.recipe.data, result.hashes, result.splits.replayed
    replay = getattr(result.recipe, "replay", ReplaySection())
    files: dict[str, tuple[Path | None, ...]] = {
        "train": data.train,
        "replayed": replay.train if replayed else (),
        **{"val": (data.val,), "cal": (data.cal,), "test": (data.test,)},
    }
    parts = result.splits.by_name
    train = parts.pop("train")
    num_new = len(train) - replayed
    splits = {"train": train[:num_new], "replayed": train[num_new:], **parts}
    splits = {name: rows for name, rows in splits.items() if rows}

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
    if data.votes == "shares":
        text = "Training rows that people labelled differently stand above once for each label"
        lines += [f"{text}, and count by its share of their votes.", ""]
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

    start = validations_in(progress.history)[0]
    rows = [
        (name, len(rows), cell(name, start), cell(name, progress.chosen))
        for name, rows in watched.items()
    ]
    if not rows:
        return []
    title = "Validation rows of earlier stages, before this one and after (95 % Wilson intervals):"
    return [title, "", markdown_table(("", "n", "accuracy before", "after"), rows), ""]
