"""Tokens are counted beside the model thread, which encodes prompts meanwhile."""

from __future__ import annotations

import threading
import time

from judging.judge import Judge
from judging.models.backbones import load_backbone
from judging.scoring.tree_batch import TreeModel
from judging.scoring.tree_engine import TreeEngine
from serve.queue.service import Service
from tests.conftest import Folders


def test_counting_does_not_change_how_the_model_thread_reads(tiny_folders: Folders) -> None:
    backbone = load_backbone(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")
    engine = TreeEngine(TreeModel(backbone.model), backbone.tokenizer.pad_token_id)
    judge = Judge("tiny", backbone, engine)
    count = Service({"tiny": judge}).token_counters["tiny"]
    outside = "<|im_end|> ends nothing. " * 50
    alone = len(judge.encoder.data(outside))
    assert alone > 50 * len("<|im_end|>") / 2
    counts: set[int] = set()
    until = time.monotonic() + 0.7

    def count_on() -> None:
        while time.monotonic() < until:
            counts.add(count(outside))

    counting = threading.Thread(target=count_on)
    counting.start()
    trees = set()
    while time.monotonic() < until:
        trees.add(judge.encoder.tree(("Correct", "Wrong")).paths)
    counting.join()
    assert counts == {alone}
    assert len(trees) == 1
