"""A ChartHal judge on the embedded backbone, measured out of fold, figures kept together.

python -m experiments charthal_folds --graded eval.json --out runs/charthal [key.path=value ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.charthal import CELLS, ChartHal, ChartHalItem
from benchmarks.framework.files import Row, parse_rows, read_file
from evaluation.estimate import Draws, without_nan
from evaluation.intervals import Floats, sign_flip_p
from evaluation.measure import measure
from evaluation.metrics import confusion_cells, ratio
from evaluation.outcomes import Outcomes, gather
from evaluation.report.markdown import markdown_table, with_interval
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.records import read_records, write_json, write_records
from judging.fingerprint import digest
from judging.judge import Judge
from judging.progress import progress_over
from judging.tasks.charthal import FAITHFUL, HALLUCINATED
from judging.types import LabelledExample, Verdict

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "train" / "hieval_stage1.py"
RECIPE = ROOT / "recipes" / "embedded" / "experiments" / "charthal.yaml"
FOLDS = 5
VAL_SHARE = 8
"""One in so many of a fold's other figures chooses its adapter."""
LABELS = (FAITHFUL, HALLUCINATED)
_ALL = "accuracy_unscored_as_wrong"

Train = Callable[[Path, Sequence[str]], Judge]


def load_graded(path: Path) -> list[LabelledExample]:
    """Scored items of a graded ChartHal file; the figure is the group.

    Raises:
        CustosError: If an item does not fit or none has a score.
    """
    examples = []
    rows: list[Row] = list(read_file(path))
    for row, item in zip(rows, parse_rows(rows, ChartHalItem), strict=True):
        if item.value is None:
            continue
        [request] = ChartHal().requests(row)
        examples.append(
            LabelledExample(**request.model_dump(), label=str(item.value), group=item.figure_id)
        )
    if not examples:
        raise CustosError(f"{path}: no item has a score of 0 or 1")
    return examples


def deal(examples: Sequence[LabelledExample], folds: int, seed: int) -> list[int]:
    """Assign a fold to every example: relations and labels spread evenly, each figure in one fold.

    Raises:
        CustosError: If there are fewer figures than folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    groups = [example.group for example in examples]
    if len(set(groups)) < folds:
        raise CustosError(f"{len(set(groups))} figures cannot be dealt into {folds} folds")
    strata = [
        f"{example.metadata['cell'].partition('_')[2]}/{example.label}" for example in examples
    ]
    fold_of = [0] * len(examples)
    dealt = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for fold, (_, held_out) in enumerate(dealt.split(groups, strata, groups)):
        for index in held_out:
            fold_of[index] = fold
    return fold_of


def predict_out_of_fold(
    examples: Sequence[LabelledExample],
    out: Path,
    train: Train,
    overrides: Sequence[str],
    seed: int,
) -> list[Verdict]:
    """Grade every example with a judge that was trained without its figure.

    A fold whose verdicts are already in ``out`` is not trained again.

    Raises:
        CustosError: If ``out`` holds folds of other items, overrides or another seed.
    """
    fold_of = deal(examples, FOLDS, seed)
    items = [example.model_dump(mode="json") for example in examples]
    _claim(out, digest({"items": items, "overrides": list(overrides), "seed": seed}))
    verdicts: dict[str, Verdict] = {}
    for fold in progress_over(range(FOLDS), "folds", FOLDS):
        folder = out / f"fold-{fold + 1}"
        held_out = [e for e, number in zip(examples, fold_of, strict=True) if number == fold]
        others = [e for e, number in zip(examples, fold_of, strict=True) if number != fold]
        file = folder / "verdicts.jsonl"
        done = [verdict for _, verdict in read_records(file, Verdict)] if file.is_file() else []
        if [verdict.id for verdict in done] != [example.id for example in held_out]:
            inner = deal(others, VAL_SHARE, seed)
            for name, is_train in (("train", True), ("val", False)):
                split = [e for e, part in zip(others, inner, strict=True) if (part > 0) == is_train]
                write_records(folder / f"{name}.jsonl", split)
            judge = train(folder, overrides)
            done = list(judge.grade([example.request() for example in held_out], progress=True))
            write_records(folder / "verdicts.jsonl", done)
        verdicts |= {verdict.id: verdict for verdict in done}
    return [verdicts[example.id] for example in examples]


def _claim(out: Path, made_from: str) -> None:
    """Refuse a folder that holds folds of other items, overrides or another seed."""
    claim = out / "folds.json"
    earlier = json.loads(claim.read_text(encoding="utf-8")) if claim.is_file() else None
    if earlier is None and not any(out.glob("fold-*")):
        write_json(claim, {"made_from": made_from})
    elif earlier != {"made_from": made_from}:
        raise CustosError(
            f"{out}: holds folds of other items, overrides or another seed, whose judges may have "
            "seen what is held out now; choose another --out"
        )


def train_fold(folder: Path, overrides: Sequence[str]) -> Judge:
    """Train on a fold's files with the recipe, in a process of its own.

    Raises:
        CustosError: If training fails; its own output says why.
    """
    command = [
        *(sys.executable, str(SCRIPT), "--config", str(RECIPE)),
        f"data.train=[{(folder / 'train.jsonl').resolve()}]",
        f"data.val={(folder / 'val.jsonl').resolve()}",
        f"run.output={(folder / 'judge').resolve()}",
        *overrides,
    ]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise CustosError(f"training failed in {folder}")
    return Judge.load(str(folder / "judge"))


def build_report(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    """Compare the judge with the floors; intervals are 95 % and resample figures.

    Returns:
        ``n, figures``; ``judge, always_0, majority_of_cell`` (``1`` exactly where the published
        graders found most answers good: in normal cells), each with ``accuracy`` and ``kappa``;
        an item without a label is wrong in every accuracy, as in the gain;
        ``kappa_within_cells``; ``gain``, accuracy over the cell majority, with ``p``;
        ``beats_majority_of_cell`` (the gain's interval lies above 0); ``cells``.
    """
    cells = [str(example.metadata["cell"]) for example in examples]
    judge = gather(examples, verdicts, LABELS)
    floors = {
        "always_0": [HALLUCINATED] * len(examples),
        "majority_of_cell": [
            FAITHFUL if cell.endswith("_normal") else HALLUCINATED for cell in cells
        ],
    }
    constant = {
        name: gather(examples, list(map(_verdict, examples, labels)), LABELS)
        for name, labels in floors.items()
    }
    floor = constant["majority_of_cell"]
    better, worse = judge.right & ~floor.right, floor.right & ~judge.right
    columns = np.stack([better.astype(float) - worse, np.ones(len(judge))], axis=1)
    gain = Draws.of(columns, judge.clusters).estimate(
        lambda sums: ratio(sums[..., 0], sums[..., 1]), len(judge)
    )
    report = {
        "n": len(judge),
        "figures": int(judge.clusters.max()) + 1,
        "judge": {**_accuracy(judge), **measure(judge, ("kappa", "ece"))},
        **{name: measure(floor, ("accuracy", "kappa")) for name, floor in constant.items()},
        "kappa_within_cells": _kappa_within_cells(judge, cells),
        "gain": {**gain, "p": sign_flip_p(columns[:, 0], judge.clusters)},
        "beats_majority_of_cell": gain["low"] > 0,
        "cells": {
            cell: {
                **_accuracy(judge.take(inside)),
                **measure(judge.take(inside), ("kappa",)),
                "floor": float(floor.right[inside].mean()),
            }
            for cell in CELLS
            if (inside := np.array([name == cell for name in cells])).any()
        },
    }
    return dict(without_nan(report))


def _accuracy(outcomes: Outcomes) -> dict[str, Any]:
    """Return the accuracy over all items, of which those without a label are wrong."""
    return {"accuracy": measure(outcomes, (_ALL,))[_ALL]}


def kappa_within(sums: Floats) -> Floats:
    """Compute Cohen's kappa with chance counted cell by cell: 0 for one that knows the cell.

    It is nan where chance alone agrees on everything. Shapes ``[..., cells, 2, 2]`` to ``[...]``.
    """
    size = sums.sum(axis=(-2, -1))
    observed = np.trace(sums, axis1=-2, axis2=-1).sum(axis=-1)
    by_chance = ratio(np.sum(sums.sum(axis=-1) * sums.sum(axis=-2), axis=-1), size)
    expected = np.nansum(by_chance, axis=-1)
    return ratio(observed - expected, size.sum(axis=-1) - expected)


def _kappa_within_cells(judge: Outcomes, cells: Sequence[str]) -> dict[str, Any]:
    kinds = len(LABELS)
    confusion = confusion_cells(judge.human, judge.predicted, kinds).reshape(len(judge), -1)
    inside = np.array([[name == cell for cell in CELLS] for name in cells], dtype=np.float64)
    columns = (inside[:, :, None] * confusion[:, None, :]).reshape(len(judge), -1)
    return Draws.of(columns, judge.clusters).estimate(
        lambda sums: kappa_within(sums.reshape(*sums.shape[:-1], len(CELLS), kinds, kinds)),
        float(judge.scored.sum()),
    )


def render(report: Mapping[str, Any]) -> str:
    """Render the report as Markdown, the conclusion first."""
    verb = "beats" if report["beats_majority_of_cell"] else "does not beat"
    gain = report["gain"]
    ends = "" if gain["low"] is None else f" [{gain['low']:+.3f}, {gain['high']:+.3f}]"
    names = {
        "judge": "judge, out of fold",
        "majority_of_cell": "majority of the cell (1 iff normal)",
        "always_0": "always 0",
    }
    summary = [
        (name, *(with_interval(report[key][metric]) for metric in ("accuracy", "kappa")))
        for key, name in names.items()
    ]
    cells = [
        (cell, row["accuracy"]["n"], with_interval(row["accuracy"]), f"{row['floor']:.3f}")
        for cell, row in report["cells"].items()
    ]
    return "\n\n".join(
        [
            f"The judge **{verb}** the majority of the cell: accuracy {gain['value']:+.3f}{ends}, "
            f"p by figures = {gain['p']:.2g}; "
            f"{report['n']} items on {report['figures']} figures, {FOLDS} folds by figure.",
            markdown_table(("", "accuracy", "kappa"), summary),
            f"Kappa within cells: {with_interval(report['kappa_within_cells'])}. "
            f"Calibration error, uncalibrated: {with_interval(report['judge']['ece'])}.",
            markdown_table(("cell", "n", "accuracy", "majority"), cells),
        ]
    )


def _verdict(example: LabelledExample, label: str) -> Verdict:
    return Verdict(id=example.id, status="scored", label=label)


def main(argv: Sequence[str] | None = None, train: Train = train_fold) -> None:
    """Run the program; print one line and exit with status 2 on any known error."""
    parser = argparse.ArgumentParser(prog="python -m experiments charthal_folds")
    parser.add_argument("--graded", type=Path, required=True, help="graded ChartHal file")
    parser.add_argument("--out", type=Path, default=Path("runs/charthal"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("overrides", nargs="*", metavar="key.path=value")
    options = parser.parse_args(argv)
    console = Console()
    started = time.perf_counter()
    examples = load_graded(options.graded)
    verdicts = predict_out_of_fold(examples, options.out, train, options.overrides, options.seed)
    report = {**build_report(examples, verdicts), "seconds": time.perf_counter() - started}
    write_json(options.out / "report.json", report)
    text = render(report)
    write_text(options.out / "report.md", text + "\n")
    console.print(text, markup=False, soft_wrap=True)
