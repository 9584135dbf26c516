"""Rows of every text task, as ``custos prep`` makes them, and plain passes over them."""

import copy
import json
import os
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from cli.main import app
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample

NAME = "qwen2.5-coder-0.5b"
MARKS = [
    pytest.mark.real_weights,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        "CUSTOS_REAL_WEIGHTS" not in os.environ, reason="it fetches 491 MB: make real-weights"
    ),
]
COMMANDS: dict[str, tuple[str, ...]] = {
    "synthetic": ("--rows", "60"),
    "claims": ("--rows", "60"),
    "charts": ("--rows", "40"),
    "pairs": ("--rows", "60"),
    "benchmark-answers": ("--rows", "200"),
    "criterion": ("--rows", "60"),
    "hard": ("--source", "synthetic", "--kind", "options"),
}
"""Makers of rows, and what each is told."""
SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "hieval-qs": ("synthetic/train.jsonl", {}),
    "hieval-ea": ("charts/train.jsonl", {}),
    "truthful-pair": ("pairs/train.jsonl", {"mode": "score"}),
    "truthful-pure-label": ("pairs/train.jsonl", {"mode": "score"}),
    "truthful-critique-score": ("pairs/scores/train.jsonl", {"mode": "score"}),
    "truthful-reward": ("pairs/scores/train.jsonl", {"mode": "score"}),
    "truthful-option": ("hard/train.jsonl", {"variant": "stated"}),
    "criterion": ("criterion/train.jsonl", {}),
    "charthal": ("benchmark-answers/train.jsonl", {}),
    "simplevqa": ("benchmark-answers/train.jsonl", {}),
    "chartom-fact": ("benchmark-answers/train.jsonl", {}),
    "chartom-justification": ("claims/train.jsonl", {"variant": "plain"}),
    "chartom-prediction": ("claims/train.jsonl", {"variant": "plain", "references": ()}),
}
"""Task, the file that its rows come from, and what is changed in them beside their task. Pictures
are left out."""


def make_rows(folder: Path) -> None:
    """Write the files of :data:`SOURCES` to a folder."""
    for maker, options in COMMANDS.items():
        told = [str(folder / each) if each in COMMANDS else each for each in options]
        done = CliRunner().invoke(app, ["prep", maker, "--out", str(folder / maker), *told])
        assert done.exit_code == 0, done.output


def requests_of(task: str, folder: Path, count: int) -> list[JudgeRequest]:
    """Return so many requests of a task, its rubrics in turn."""
    file, changes = SOURCES[task]
    own_rows = file.startswith("benchmark-answers")
    by_rubric = defaultdict(list)
    for line in (folder / file).read_text(encoding="utf-8").splitlines():
        row = LabelledExample.model_validate(json.loads(line))
        if own_rows and row.task != task:
            continue
        request = row.request().model_copy(update={"task": task, "images": (), **changes})
        get_task(task).check(request)
        by_rubric[get_task(task).rubric(request)].append(request)
    turns = chain.from_iterable(zip_longest(*by_rubric.values()))
    return [request for request in turns if request is not None][:count]


@torch.inference_mode()
def plain_scores(model: Any, prompt: EncodedPrompt, tree: LabelTree) -> list[float]:
    """Score the labels after one prompt with the library alone, which reads the prompt once."""
    ids = torch.tensor([prompt.prefix_ids + prompt.suffix_ids])
    read = model(input_ids=ids, use_cache=True, logits_to_keep=1)
    scores = []
    for path in tree.paths:
        label = torch.tensor([[token for _, token in path]])
        cache = copy.deepcopy(read.past_key_values)
        after = model(input_ids=label[:, :-1], past_key_values=cache).logits
        logits = torch.cat([read.logits, after], dim=1)[0].double()
        chosen = logits.log_softmax(-1).gather(1, label[0, :, None])
        scores.append(float(chosen.sum()))
    return scores


def report(line: str) -> None:
    """Print a figure; ``make real-weights`` shows what tests print."""
    Console(width=150, highlight=False).print(f"\n{line}")
