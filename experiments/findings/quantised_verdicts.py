"""Verdicts that change between a backbone in 4 bits and the weights that a judge serves with.

python -m experiments quantised_verdicts embedded-qs --data data/evouna/test.jsonl --rows 200 \
--out runs/quantised_verdicts.json

A judge that is trained with ``run.quantization=nf4`` sees the 4 bits; its adapter is then merged
into the unquantised weights. All forms have the judge's own adapter and no calibration.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from evaluation.estimate import mean, share, without_nan
from evaluation.outcomes import full_label, question_numbers
from evaluation.report.evaluate import grade_examples
from evaluation.report.markdown import markdown_table, with_interval
from judging.errors import CustosError
from judging.files.records import read_records, write_json
from judging.fingerprint import file_sha256
from judging.judge import Judge
from judging.judge.card import read_card, run_folder
from judging.models.adapters import check_bitsandbytes
from judging.types import LabelledExample, Verdict

if TYPE_CHECKING:
    from judging.models.backbones import Backbone, Dtype


MERGED = "merged in float32"
NF4 = "NF4, adapter beside it"
FORMS = (MERGED, "merged, rounded to bfloat16", NF4, "merged into NF4, quantised again")
"""Forms of a judge: as :meth:`Judge.load` merges it in two formats, as it is trained on 4 bits, and
as PEFT merges it into these."""


def compare(
    verdicts: Mapping[str, Sequence[Verdict]], examples: Sequence[LabelledExample], seed: int = 0
) -> dict[str, Any]:
    """Compare the verdicts of every form with those of the first and with those of 4 bits.

    Returns:
        By form: ``accuracy``, and under ``changed`` and ``moved`` by the form that it is compared
        with: the share of labels that differ, and the mean of the largest change of a probability.
    """
    clusters = question_numbers(examples)
    every = np.ones(len(examples), bool)
    people = np.array([full_label(example) for example in examples])
    labels = {form: np.array([v.label or v.status for v in of]) for form, of in verdicts.items()}

    def moved(form: str, base: str) -> dict[str, Any]:
        changes = [
            max(abs(one.probabilities[key] - other.probabilities[key]) for key in one.probabilities)
            for one, other in zip(verdicts[form], verdicts[base], strict=True)
        ]
        return mean(np.array(changes), every, clusters, seed=seed)

    return {
        form: {
            "accuracy": share(labels[form] == people, every, clusters, seed=seed),
            "changed": {
                base: share(labels[form] != labels[base], every, clusters, seed=seed)
                for base in (MERGED, NF4)
            },
            "moved": {base: moved(form, base) for base in (MERGED, NF4)},
        }
        for form in verdicts
    }


def form_judges(source: str) -> dict[str, Callable[[], Judge]]:
    """Return functions that load a judge in every form.

    Raises:
        CustosError: If it is not a judge with an adapter, or bitsandbytes is not installed.
    """
    check_bitsandbytes("quantised_verdicts")
    folder = run_folder(source)
    if folder is None:
        raise CustosError(f"{source}: expected a run folder or a shipped judge")
    return {
        MERGED: lambda: _merged(folder, "float32"),
        FORMS[1]: lambda: _merged(folder, "bfloat16"),
        NF4: lambda: _quantised(folder, merge=False),
        FORMS[3]: lambda: _quantised(folder, merge=True),
    }


def _merged(folder: Path, dtype: Dtype) -> Judge:
    """Load a judge as :meth:`Judge.load` does."""
    from judging.models.backbones import load_backbone

    card = read_card(folder)
    version = card.backbone_version
    backbone = load_backbone(card.backbone, dtype=dtype, version=version, adapter=folder)
    return _uncalibrated(folder, backbone, backbone.model)


def _quantised(folder: Path, *, merge: bool) -> Judge:
    """Load a judge with its backbone in 4 bits, its adapter beside it or merged into them."""
    from judging.models.adapters import load_adapter
    from judging.models.backbones import load_backbone

    card = read_card(folder)
    backbone = load_backbone(
        card.backbone, dtype="float32", version=card.backbone_version, quantization="nf4"
    )
    model = load_adapter(backbone.model, folder)
    return _uncalibrated(folder, backbone, model.merge_and_unload() if merge else model)


def _uncalibrated(folder: Path, backbone: Backbone, model: Any) -> Judge:
    """Return the judge of a model; a calibration fitted for another form would be refused."""
    from judging.scoring.tree_batch import TreeModel
    from judging.scoring.tree_engine import TreeEngine

    card = read_card(folder)
    engine = TreeEngine(TreeModel(model.eval()), backbone.tokenizer.pad_token_id)
    seen = card.with_pixels(backbone).with_model(model)
    return Judge(folder.name, seen, engine, card)


def render(forms: Mapping[str, Any]) -> str:
    """Render what was measured as a table in Markdown."""
    head = ("form", "accuracy", "other labels than merged", "than in NF4", "probability moved by")
    rows = [
        (
            form,
            with_interval(one["accuracy"]),
            *(
                with_interval(one["changed"][base]) if form != base else "-"
                for base in (MERGED, NF4)
            ),
            with_interval(one["moved"][MERGED]) if form != MERGED else "-",
        )
        for form, one in forms.items()
    ]
    return markdown_table(head, rows)


def main(argv: Sequence[str]) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments quantised_verdicts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("judge", help="run folder or shipped judge")
    parser.add_argument("--data", type=Path, required=True, help="labelled rows")
    parser.add_argument("--rows", type=int, help="only the first so many (default all)")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--seed", type=int, default=0, help="of the intervals (default 0)")
    options = parser.parse_args(argv)
    loaders = form_judges(options.judge)
    examples = [row for _, row in read_records(options.data, LabelledExample)][: options.rows]
    verdicts = {form: grade_examples(load(), examples) for form, load in loaders.items()}
    forms = compare(verdicts, examples, options.seed)
    if options.out:
        report = {
            "judge": options.judge,
            "command": shlex.join(["python", "-m", "experiments", "quantised_verdicts", *argv]),
            "data_sha256": file_sha256(options.data),
            "n": len(examples),
            "forms": forms,
        }
        write_json(options.out, without_nan(report))
    groups = len({example.group or example.asked for example in examples})
    page = f"{options.judge}, {len(examples)} rows in {groups} groups\n\n{render(forms)}"
    Console().print(page, markup=False, soft_wrap=True)
