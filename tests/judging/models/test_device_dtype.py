"""Weights rounded to bfloat16 are multiplied in float32 where a CPU has no instructions for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.models.device_dtype import computes_bfloat16
from tests.conftest import FAMILIES, Folders
from tests.judging.made_up import ask
from tests.tiny import Family

AVX2: dict[str, object] = {
    "architecture": "x86_64",
    "avx2": True,
    "avx512_bf16": False,
    "amx_bf16": False,
}
WITH_BFLOAT16: dict[str, object] = {**AVX2, "avx512_bf16": True, "cpu_name": "AMD EPYC"}
INTEL: dict[str, object] = {**WITH_BFLOAT16, "cpu_name": "Intel Xeon"}
INTEL_AMX: dict[str, object] = {**INTEL, "amx_bf16": True}
NEON: dict[str, object] = {"neon": True, "bf16": True}


def on_cpu(monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, object]) -> None:
    """Make PyTorch report another CPU."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (AVX2, False),
        (WITH_BFLOAT16, True),
        (INTEL, False),
        (INTEL_AMX, True),
        (NEON, True),
        ({"neon": True}, False),
    ],
)
def test_cpus(
    capabilities: dict[str, object], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu(monkeypatch, capabilities)
    assert computes_bfloat16(torch.device("cpu")) is expected
    assert computes_bfloat16(torch.device("cuda"))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_are_the_rounded_ones_on_every_cpu(
    family: Family, tiny_folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu(monkeypatch, WITH_BFLOAT16)
    rounded = load_backbone(tiny_folders(family), device="cpu").model.state_dict()
    on_cpu(monkeypatch, AVX2)
    held = load_backbone(tiny_folders(family), device="cpu").model.state_dict()
    exact = load_backbone(tiny_folders(family), dtype="float32", device="cpu").model.state_dict()
    assert {weight.dtype for weight in rounded.values()} == {torch.bfloat16}
    assert {weight.dtype for weight in held.values()} == {torch.float32}
    assert all(torch.equal(held[name], rounded[name].float()) for name in rounded)
    assert any(not torch.equal(held[name], exact[name]) for name in exact)


@pytest.mark.parametrize("trained", [True, False])
def test_a_calibration_fits_every_cpu_and_a_fingerprint_one(
    trained: bool, tiny_folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tiny_folders("qwen2_5_vl")
    if trained:
        backbone = load_backbone(source, dtype="float32", device="cpu")
        source = str(tmp_path / "mine")
        add_adapter(backbone.model, r=2, alpha=2).save_pretrained(source)
        card = JudgeCard.for_rubrics(backbone, {"hieval-qs": ("plain/all",)}, 1024)
        (tmp_path / "mine" / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")

    on_cpu(monkeypatch, WITH_BFLOAT16)
    rounding = Judge.load(source, device="cpu")
    on_cpu(monkeypatch, AVX2)
    held = Judge.load(source, device="cpu")
    exact = Judge.load(source, dtype="float32", device="cpu")

    assert held.identity == rounding.identity != exact.identity
    assert len({judge.fingerprint(ask()) for judge in (held, rounding, exact)}) == 3
    assert rounding.engine.location == exact.engine.location == {}
    assert held.engine.location == {"arithmetic": "float32"}
    [one], [other] = rounding.grade([ask()]), held.grade([ask()])
    assert one.probabilities == pytest.approx(other.probabilities, abs=0.02)
    assert one.probabilities != other.probabilities
