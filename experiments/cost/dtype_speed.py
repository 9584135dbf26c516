"""Speed and verdicts of a judge that computes in bfloat16 or in float32, with the same weights.

python -m experiments dtype_speed --judge embedded-qs --data data/evouna/test.jsonl --rows 192 \
    --out runs/arithmetic_cost.json

The weights are rounded to bfloat16 in both cases. A CPU without bfloat16 instructions computes in
float32; this measures what that gains and which verdicts change. One process grades the rows in
parts, each part in both number formats.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from evaluation.intervals import wilson_interval
from judging.errors import CustosError
from judging.files.records import read_records, write_json
from judging.judge import Judge
from judging.models.backbones import Dtype
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from judging.types import JudgeRequest, LabelledExample, Verdict

PART = 64
DTYPES: tuple[Dtype, ...] = ("float32", "bfloat16")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=192)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    examples = [example for _, example in read_records(arguments.data, LabelledExample)]
    requests = [example.request() for example in examples[: arguments.rows]]
    measured = measure(Judge.load(arguments.judge), requests)
    if arguments.out:
        write_json(arguments.out, measured)
    Console().print_json(data=measured)


def measure(judge: Judge, requests: Sequence[JudgeRequest]) -> dict[str, Any]:
    """Grade every request in both number formats.

    Returns:
        ``n`` requests with a posterior, the seconds of each number format and their ratio, the
        share of equal labels with its Wilson interval, and the mean and largest difference of
        probabilities.
    """
    judges = {dtype: computing_in(judge, dtype) for dtype in DTYPES}
    seconds = dict.fromkeys(DTYPES, 0.0)
    verdicts: dict[Dtype, list[Verdict]] = {dtype: [] for dtype in DTYPES}
    for converted in judges.values():
        list(converted.grade(requests[:PART]))  # kernels are made at a shape's first use
    for start in range(0, len(requests), PART):
        for dtype, converted in judges.items():
            started = time.perf_counter()
            verdicts[dtype] += converted.grade(requests[start : start + PART])
            seconds[dtype] += time.perf_counter() - started
    pairs = [
        (exact, rounded)
        for exact, rounded in zip(*verdicts.values(), strict=True)
        if exact.probabilities
    ]
    if not pairs:
        raise CustosError("no row was given a posterior")
    same = sum(exact.label == rounded.label for exact, rounded in pairs)
    gaps = [
        max(abs(p - rounded.probabilities[label]) for label, p in exact.probabilities.items())
        for exact, rounded in pairs
    ]
    low, high = wilson_interval(same, len(pairs))
    return {
        "judge": judge.name,
        "n": len(pairs),
        "seconds": seconds,
        "bfloat16_over_float32": seconds["bfloat16"] / seconds["float32"],
        "same_label": {"value": same / len(pairs), "low": low, "high": high},
        "probability_gap": {"mean": sum(gaps) / len(gaps), "largest": max(gaps)},
    }


def computing_in(judge: Judge, dtype: Dtype) -> Judge:
    """Return a judge with the same weights that computes in ``dtype`` on every device.

    Buffers, such as the rotary frequencies, stay in float32.
    """
    import torch

    from judging.models.attention import choose_attention

    assert isinstance(judge.engine, TreeEngine)
    model = copy.deepcopy(judge.engine.model.backbone)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(getattr(torch, dtype))
    model.set_attn_implementation(choose_attention(model.config, model.device, model.dtype))
    converted = copy.copy(judge)
    converted.engine = TreeEngine(TreeModel(model), judge.engine.pad_id, dtype=judge.engine.dtype)
    return converted
