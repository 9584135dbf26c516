"""A run counts its speed: tokens, padding, arithmetic, memory, waiting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tests.tiny import Family, save_picture, save_tiny
from tests.train.made_up import example, examples, recipe, trainer
from train.tracking.throughput import peak_memory
from train.tracking.trackers import METRICS_FILE


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl"])
def test_operations_are_those_that_pytorch_counts(family: Family, tmp_path: Path) -> None:
    """Of a whole step, with a picture in every second row; PyTorch counts padding too.

    It does not count what the CPU's fused attention kernel does, so plain products stand in.
    """
    folder = str(save_tiny(tmp_path / "backbone", family))
    picture = save_picture(tmp_path / "a.png", 112, 112)
    rows = [example(4 * i, **({"images": (picture,)} if i % 2 else {})) for i in range(8)]
    learner = trainer(recipe(tmp_path / "run", optim__epochs=1), folder, rows)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        learner.train_step(learner.plan.micro_batches(0))
    counted = learner.throughput.operations
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.25)


def test_figures_of_every_report(small: str, tmp_path: Path) -> None:
    settings = recipe(tmp_path, optim__max_steps=4, run__peak_tflops=0.5)
    learner = trainer(settings, small, examples(32))
    tokens, padding = 0, 0
    for step in range(4):
        for micro_batch in learner.plan.micro_batches(step):
            [batch] = learner.loader.batches(learner.rows.train, [micro_batch])
            pad = learner.rows.train.encoder.backbone.tokenizer.pad_token_id
            tokens += int((batch.layout.input_ids != pad).sum()) + len(batch.layout.prefix_ids)
            padding += int((batch.layout.input_ids == pad).sum())
    learner.fit()
    lines = (tmp_path / METRICS_FILE).read_text(encoding="utf-8").splitlines()
    reports = [entry for line in lines if "train_loss" in (entry := json.loads(line))]
    assert [report["step"] for report in reports] == [2, 4]
    seconds = [16 / report["rows_per_second"] for report in reports]
    of_tokens = [r["tokens_per_second"] * s for r, s in zip(reports, seconds, strict=True)]
    assert sum(of_tokens) == pytest.approx(tokens, rel=0.05)
    assert 0 < min(r["padded_share"] for r in reports) < padding / tokens * 3
    for report in reports:
        assert report["grad_norm"] > 0
        assert 0 < report["mfu"] < 1
        assert 0 <= report["data_wait_share"] <= 1
        assert report["peak_memory_gb"] == pytest.approx(
            peak_memory(torch.device("cpu")) / 1e9, rel=0.2
        )
