"""Time of attention with and without a mask, and of the layout of long rows.

python -m experiments attention_cost --out runs/attention_cost.json

Attention has the shape of the embedded backbone's layers, and every query sees all that comes
before it: once as two matrix products under a mask, once in PyTorch's causal kernel. The layout is
that of rows with a text as their tree, and of rows with the labels of error analysis.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from judging.files.records import write_json
from judging.scoring.label_tree import LabelTree

ROWS, PROMPT, TEXT, LABELS, LABEL_TOKENS = 4, 4000, 400, 11, 5
HEADS, KV_HEADS, SIZE = 9, 3, 64
LENGTHS = (128, 256, 512, 1024, 2048)
REPEATS = 7


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    chain = LabelTree.build(["text"], [list(range(TEXT + 1))])
    labels = [[i % 3, i, *range(20, 18 + LABEL_TOKENS)] for i in range(LABELS)]
    branches = LabelTree.build([str(i) for i in range(LABELS)], labels)
    summary: dict[str, Any] = {
        "layout_ms": {"text": layout_time(chain), "labels": layout_time(branches)},
        "attention": [
            attention_times(length, dtype, training=training)
            for dtype in ("float32", "bfloat16")
            for training in (False, True)
            for length in LENGTHS
        ],
    }
    if arguments.out:
        write_json(arguments.out, summary)
    Console().print_json(data=summary)


def layout_time(tree: LabelTree) -> float:
    """Return the milliseconds in which rows of long prompts with a tree are laid out."""
    import torch

    from judging.scoring.prompts import EncodedPrompt
    from judging.scoring.tree_batch import make_tree_batch

    tokens = tuple(range(PROMPT))
    prompt = EncodedPrompt((), tokens, torch.arange(PROMPT).expand(3, -1), {}, truncated=False)
    return _median(lambda: make_tree_batch([prompt] * ROWS, [tree] * ROWS, 0))


def attention_times(length: int, dtype: str, *, training: bool) -> dict[str, Any]:
    """Return the milliseconds of one layer's attention over a row, forward or also backward."""
    import torch

    from judging.models.attention import grouped_attention

    form = getattr(torch, dtype)
    query, key, value = (
        torch.randn(1, heads, length, SIZE, dtype=form, requires_grad=training)
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    )
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    mask = torch.zeros(1, 1, length, length, dtype=form)
    mask = mask.masked_fill_(~visible, torch.finfo(form).min)
    layer = torch.nn.Module()

    def run(mask: Any) -> None:
        with torch.set_grad_enabled(training):
            out, _ = grouped_attention(layer, query, key, value, mask, SIZE**-0.5)
            if training:
                out.float().sum().backward()

    return {
        "tokens": length,
        "dtype": dtype,
        "training": training,
        "mask_ms": _median(lambda: run(mask)),
        "causal_ms": _median(lambda: run(None)),
    }


def _median(call: Callable[[], object]) -> float:
    """Return the median milliseconds of a call, after two calls that are not counted."""
    taken = []
    for _ in range(2 + REPEATS):
        started = time.perf_counter()
        call()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken[2:])


if __name__ == "__main__":
    main()
