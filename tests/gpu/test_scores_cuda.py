"""Scores and texts on a GPU are those of the CPU, in a flash kernel.

``pytest -m cuda -s tests/gpu/test_scores_cuda.py``
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from judging.models.backbones import load_backbone
from judging.scoring.engine import GeneratedText, Sampling, texts_in_order
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from tests.gpu.figures import DEVICE, ON_GPU, REHEARSAL, Figures
from tests.gpu.steps import FAMILIES, Step, save_starts, take_step
from tests.judging.made_up import ask
from tests.judging.scoring.made_up import encode, engine_of

pytestmark = ON_GPU


@pytest.fixture(scope="module")
def started(checkpoints: Path) -> Path:
    """Folder of the checkpoints, with an adapter to train on critiques from."""
    save_starts(checkpoints, ["critique"])
    return checkpoints


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_and_texts_are_those_of_the_cpu(
    family: str, checkpoints: Path, figures: Figures
) -> None:
    picture = str(checkpoints / "picture.png")
    requests = [ask(), ask("It is 18."), ask("Nine.", images=(picture,)), ask(images=(picture,))]
    scores, texts = {}, {}
    for device in ("cpu", DEVICE):
        backbone = load_backbone(str(checkpoints / family), dtype="float32", device=device)
        assert backbone.model.device.type == device
        engine, prompts = engine_of(backbone), encode(backbone, requests)
        tree = Encoder(backbone).tree(get_task("hieval-qs").labels("plain/all"))
        scores[device] = torch.tensor(engine.score(prompts, tree))
        sampling = Sampling(max_new_tokens=24, temperature=0.0)
        batches = engine.generate(
            prompts, Encoder(backbone), "</never>", range(len(prompts)), sampling
        )
        texts[device] = [_tokens(text) for text in texts_in_order(batches)]
    error = float((scores[DEVICE] - scores["cpu"]).abs().max())
    figures.add("label log-probability error", family, error, "nat", "< 1e-3")
    assert scores["cpu"].std(0).min() > 0.02, "prompts must matter, or equality shows nothing"
    assert error < 1e-3
    assert all(len(tokens) > 1 for tokens in texts["cpu"])
    assert texts[DEVICE] == texts["cpu"]


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_runs_in_the_flash_kernel(
    family: str, started: Path, tmp_path: Path, figures: Figures
) -> None:
    """Text without branches: training on critiques, in bfloat16, as every recipe does."""
    step = Step("critique", family, pictures=False, checkpointing=True)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        take_step(step, "bf16", started, tmp_path / "step")
    calls = Counter[str]()
    for event in profiler.key_averages():
        if "scaled_dot_product" in event.key:
            calls[event.key.removeprefix("aten::")] += event.count
    for operator, count in sorted(calls.items()):
        figures.add("attention of a run of one step", f"{family}, {operator}", count, "calls")
    if not REHEARSAL:
        assert calls["_scaled_dot_product_flash_attention"]
        assert calls["_scaled_dot_product_flash_attention_backward"]
        assert not any("cudnn" in operator or "math" in operator for operator in calls)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_engine_names_its_kernels(family: str, checkpoints: Path) -> None:
    """They are part of a judge's fingerprint; cuDNN, which plans anew for every shape, is none."""
    backbone = load_backbone(str(checkpoints / family), dtype="bfloat16", device=DEVICE)
    kernels = engine_of(backbone).location.get("kernels", "").split(", ")
    assert ("flash" in kernels) == (DEVICE == "cuda")
    assert "cudnn" not in kernels


def _tokens(text: Any) -> tuple[int, ...]:
    assert isinstance(text, GeneratedText)
    return text.tokens
