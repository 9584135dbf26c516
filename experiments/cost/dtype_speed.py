"""What a judge computes in, compared: bfloat16 and float32 over the same rounded weights.

python -m experiments dtype_speed --judge embedded-qs --data data/evouna/test.jsonl --rows 192 \
    --out runs/arithmetic_cost.json

On a CPU without bfloat16 instructions a judge computes in float32 by itself; this is what it gains
and what changes. Parts of the rows are graded in turn, both ways in one process.
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
from judging.judge import Judge
from judging.models.backbones import Dtype
from judging.records import read_records, write_json
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from judging.types import JudgeRequest, LabelledExample, Verdict

PART = 64
WAYS: tuple[Dtype, ...] = ("float32", "bfloat16")


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=192)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    try:
        examples = [example for _, example in read_records(arguments.data, LabelledExample)]
        requests = [example.request() for example in examples[: arguments.rows]]
        measured = measure(Judge.load(arguments.judge), requests)
    except CustosError as error:
        parser.exit(2, f"error: {error}\n")
    if arguments.out:
        write_json(arguments.out, measured)
    Console().print_json(data=measured)


def measure(judge: Judge, requests: Sequence[JudgeRequest]) -> dict[str, Any]:
    """Grade every request both ways.

    Returns:
        ``n`` requests with a posterior, seconds of each way and their ratio, the share of equal
        labels with its Wilson interval, and differences of the probabilities: mean and largest.
    """
    judges = {way: computing_in(judge, way) for way in WAYS}
    seconds = dict.fromkeys(WAYS, 0.0)
    verdicts: dict[Dtype, list[Verdict]] = {way: [] for way in WAYS}
    for one in judges.values():
        list(one.grade(requests[:PART]))  # kernels are made at a shape's first use
    for start in range(0, len(requests), PART):
        for way, one in judges.items():
            started = time.perf_counter()
            verdicts[way] += one.grade(requests[start : start + PART])
            seconds[way] += time.perf_counter() - started
    both = [
        (one, other) for one, other in zip(*verdicts.values(), strict=True) if one.probabilities
    ]
    if not both:
        raise CustosError("no row was given a posterior")
    same = sum(one.label == other.label for one, other in both)
    gaps = [
        max(abs(p - other.probabilities[label]) for label, p in one.probabilities.items())
        for one, other in both
    ]
    low, high = wilson_interval(same, len(both))
    return {
        "judge": judge.name,
        "n": len(both),
        "seconds": seconds,
        "bfloat16_over_float32": seconds["bfloat16"] / seconds["float32"],
        "same_label": {"value": same / len(both), "low": low, "high": high},
        "probability_gap": {"mean": sum(gaps) / len(gaps), "largest": max(gaps)},
    }


def computing_in(judge: Judge, dtype: Dtype) -> Judge:
    """A judge with the same weights that computes in ``dtype``, whatever the device favours.

    Buffers, the rotary frequencies among them, stay in float32.
    """
    import torch

    assert isinstance(judge.engine, TreeEngine)
    model = copy.deepcopy(judge.engine.model.backbone)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(getattr(torch, dtype))
    other = copy.copy(judge)
    other.engine = TreeEngine(TreeModel(model), judge.engine.pad_id, dtype=judge.engine.dtype)
    return other


if __name__ == "__main__":
    main()
