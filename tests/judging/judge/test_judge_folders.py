"""Judges as they are read from a folder: card, adapter, calibration, fingerprint."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from transformers import Qwen2_5_VLForConditionalGeneration

from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import read_card
from judging.models.backbones import load_backbone
from judging.verdicts.build import before_calibration
from judging.verdicts.calibration import Calibration, CalibrationSet
from tests.judging.made_up import ask


def _load(folder: Path | str, dtype: Literal["float32", "bfloat16"] = "float32") -> Judge:
    return Judge.load(str(folder), dtype=dtype, device="cpu")


def _calibrate(folder: Path, judge: Judge, **bias: float) -> Judge:
    fitted = Calibration(temperature=4.0, bias=bias, n=9, nll_before=1, nll_after=1)
    calibration = CalibrationSet(judge=judge.identity, rubrics={"hieval-qs/plain/all": fitted})
    (folder / "calibration.json").write_text(calibration.model_dump_json(), encoding="utf-8")
    return _load(folder)


@pytest.mark.usefixtures("bfloat16_cpu")
def test_positions_are_those_of_training(run_folder: Path) -> None:
    """Rounded rotary frequencies would be off by radians at a distance of a thousand tokens."""
    backbone = load_backbone(read_card(run_folder).backbone, dtype="float32", device="cpu")
    trained = dict(backbone.model.named_buffers())
    served = _load(run_folder, "bfloat16").backbone.model
    buffers = dict(served.named_buffers())
    frequencies = [name for name in trained if name.endswith("inv_freq")]
    assert len(frequencies) >= 2, "text and vision"
    for name in frequencies:
        assert buffers[name].dtype == torch.float32
        assert torch.equal(buffers[name], trained[name])
    assert {p.dtype for p in served.parameters()} == {torch.bfloat16}


def test_weights_are_loaded_one_model_at_a_time(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, at_once = Qwen2_5_VLForConditionalGeneration.from_pretrained, [0, 0]

    def slowly(*given: Any, **named: Any) -> Any:
        at_once[0] += 1
        at_once[1] = max(at_once)
        time.sleep(0.05)
        model = read(*given, **named)
        at_once[0] -= 1
        return model

    monkeypatch.setattr(Qwen2_5_VLForConditionalGeneration, "from_pretrained", slowly)
    with ThreadPoolExecutor(3) as pool:
        load = partial(Judge.load, str(run_folder), device="cpu")
        assert len([one.result() for one in [pool.submit(load) for _ in range(3)]]) == 3
    assert at_once == [0, 1]


def test_fingerprints_follow_what_could_change_a_verdict(
    judge: Judge, run_folder: Path, folder: Path
) -> None:
    base_print = judge.fingerprint(ask(id="1"))
    assert judge.fingerprint(ask(id="2")) == base_print
    assert judge.fingerprint(ask("another response")) == base_print  # the request's own half
    assert _load(run_folder).fingerprint(ask()) == base_print
    zero_shot = _load(judge.backbone.name)
    assert zero_shot.card is None and "hieval-qs" in zero_shot.tasks
    others = [
        judge.fingerprint(ask(variant="tolerance")),
        judge.fingerprint(ask(reference_mode="any")),
        _load(run_folder, "bfloat16").fingerprint(ask()),
        zero_shot.fingerprint(ask()),
        _calibrate(folder, judge, Correct=0.5, Partial=0.0, Wrong=-0.5).fingerprint(ask()),
        _calibrate(folder, judge, Correct=0.0, Partial=0.0, Wrong=0.0).fingerprint(ask()),
    ]
    with pytest.raises(CustosError, match="fitted for judge"):
        _load(folder, "bfloat16")
    (folder / "calibration.json").unlink()
    card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    (folder / "judge.json").write_text(json.dumps(card | {"response_budget": 51}))
    others.append(_load(folder).fingerprint(ask()))
    assert len({base_print, *others}) == 8


def test_calibration_changes_probabilities_but_not_the_pass(judge: Judge, folder: Path) -> None:
    calibrated = _calibrate(folder, judge, Correct=30.0, Partial=0.0, Wrong=-30.0)
    [verdict] = calibrated.grade([ask()])
    [plain] = judge.grade([ask()])
    assert verdict.label == "Correct"
    assert verdict.probabilities != plain.probabilities
    assert verdict.passes == plain.passes
    [raw] = calibrated.grade([ask()], calibrated=False)
    assert raw.probabilities == plain.probabilities
    assert before_calibration(ask(), verdict) == raw
    [uncovered] = calibrated.grade([ask(variant="tolerance")])  # no calibration for this rubric
    assert uncovered.probabilities == uncovered.passes[0].posterior


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"backbone_version": "embedded@9"}, "trained on .* embedded@9, but version [0-9a-f]{16}"),
        ({"instructions": {}}, "instruction of 'hieval-qs/plain/all' has changed"),
        ({"extra": 1}, "not a judge card"),
        ({"backbone": "/no/such/folder"}, "cannot be loaded"),
        ({"tasks": {"newer": ["plain"]}}, r"judge\.json: field 'task': 'newer' is not one of"),
        # A response can imitate the fields of a judge of the older layout.
        ({"layout": "lines"}, r"judge.json: .* lines of one text.* adapter.init="),
        ({"layout": None}, r"judge.json: .* lines of one text.* adapter.init="),
        (b"\xff\xfe{}", r"judge\.json: not a judge card: not "),
        (b"[" * 200_000, r"judge\.json: not a judge card: not "),
    ],
)
def test_cards_that_do_not_fit(folder: Path, change: dict[str, Any] | bytes, message: str) -> None:
    if not isinstance(change, bytes):
        card = json.loads((folder / "judge.json").read_text(encoding="utf-8")) | change
        kept = {name: value for name, value in card.items() if name != "layout" or value}
        change = json.dumps(kept).encode()
    (folder / "judge.json").write_bytes(change)
    with pytest.raises(CustosError, match=message) as caught:
        Judge.load(str(folder), device="cpu")
    assert "\n" not in str(caught.value)
