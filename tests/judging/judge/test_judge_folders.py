"""Judges as they are read from a folder: card, adapter, calibration, fingerprint."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

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


def _calibrate(folder: Path, judge: Judge, **bias: float) -> None:
    fitted = Calibration(temperature=4.0, bias=bias, n=9, nll_before=1, nll_after=1)
    calibration = CalibrationSet(judge=judge.identity, rubrics={"hieval-qs/plain/all": fitted})
    (folder / "calibration.json").write_text(calibration.model_dump_json(), encoding="utf-8")


@pytest.mark.usefixtures("bfloat16_cpu")
def test_positions_are_those_of_training(run_folder: Path) -> None:
    """Rounded rotary frequencies would be off by radians at a distance of a thousand tokens."""
    backbone = load_backbone(read_card(run_folder).backbone, dtype="float32", device="cpu")
    trained = dict(backbone.model.named_buffers())
    loaded = Judge.load(str(run_folder), dtype="bfloat16", device="cpu")
    served = dict(loaded.backbone.model.named_buffers())
    frequencies = [name for name in trained if name.endswith("inv_freq")]
    assert len(frequencies) >= 2, "text and vision"
    for name in frequencies:
        assert served[name].dtype == torch.float32
        assert torch.equal(served[name], trained[name])
    assert {p.dtype for p in loaded.backbone.model.parameters()} == {torch.bfloat16}


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
    assert judge.fingerprint(ask(variant="tolerance")) != base_print
    assert judge.fingerprint(ask(reference_mode="any")) != base_print
    again = Judge.load(str(run_folder), dtype="float32", device="cpu")
    assert again.fingerprint(ask()) == base_print
    half = Judge.load(str(run_folder), dtype="bfloat16", device="cpu")
    assert half.fingerprint(ask()) != base_print
    _calibrate(folder, judge, Correct=0.5, Partial=0.0, Wrong=-0.5)
    first = Judge.load(str(folder), dtype="float32", device="cpu").fingerprint(ask())
    _calibrate(folder, judge, Correct=0.0, Partial=0.0, Wrong=0.0)
    second = Judge.load(str(folder), dtype="float32", device="cpu").fingerprint(ask())
    assert len({base_print, first, second}) == 3


def test_fingerprint_follows_the_adapter_and_the_budget(judge: Judge, folder: Path) -> None:
    card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    (folder / "judge.json").write_text(json.dumps(card | {"response_budget": 51}), encoding="utf-8")
    longer = Judge.load(str(folder), dtype="float32", device="cpu")
    assert longer.fingerprint(ask()) != judge.fingerprint(ask())
    zero_shot = Judge.load(judge.backbone.name, dtype="float32", device="cpu")
    assert zero_shot.fingerprint(ask()) != judge.fingerprint(ask())


def test_calibration_changes_probabilities_but_not_the_pass(judge: Judge, folder: Path) -> None:
    _calibrate(folder, judge, Correct=30.0, Partial=0.0, Wrong=-30.0)
    calibrated = Judge.load(str(folder), dtype="float32", device="cpu")
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


def test_a_calibration_of_another_judge_is_refused(judge: Judge, folder: Path) -> None:
    _calibrate(folder, judge, Correct=0.0, Partial=0.0, Wrong=0.0)
    with pytest.raises(CustosError, match="fitted for judge"):
        Judge.load(str(folder), dtype="bfloat16", device="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"backbone_version": "embedded@9"},
            "trained on .* version embedded@9, but version [0-9a-f]{16}",
        ),
        ({"instructions": {}}, "instruction of 'hieval-qs/plain/all' has changed"),
        ({"extra": 1}, "not a judge card"),
        ({"backbone": "/no/such/folder"}, "cannot be loaded"),
    ],
)
def test_cards_that_do_not_fit(folder: Path, change: dict[str, Any], message: str) -> None:
    card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    (folder / "judge.json").write_text(json.dumps(card | change), encoding="utf-8")
    with pytest.raises(CustosError, match=message) as caught:
        Judge.load(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


def test_a_backbone_alone_is_a_zero_shot_judge(tiny_folder: str) -> None:
    judge = Judge.load(tiny_folder, dtype="float32", device="cpu")
    assert "hieval-qs" in judge.tasks
    assert judge.card is None
    [verdict] = judge.grade([ask()])
    assert verdict.status == "scored"


def test_shipped_judges_go_by_name(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judging.judge.card.SHIPPED", run_folder.parent)
    monkeypatch.chdir(tmp_path)
    assert Judge.load("mine", device="cpu").name == "mine"


@pytest.mark.parametrize("layout", [{}, {"layout": "lines"}])
def test_a_judge_whose_fields_a_response_can_imitate_is_refused(
    folder: Path, layout: dict[str, str]
) -> None:
    card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    assert card.pop("layout") == "turns"
    (folder / "judge.json").write_text(json.dumps(card | layout), encoding="utf-8")
    with pytest.raises(CustosError, match=r"judge.json: .* lines of one text.* adapter.init="):
        Judge.load(str(folder), device="cpu")


@pytest.mark.parametrize("content", [b"\xff\xfe{}", b"[" * 200_000, b"{"])
def test_a_damaged_card_is_one_line(folder: Path, content: bytes) -> None:
    (folder / "judge.json").write_bytes(content)
    with pytest.raises(CustosError, match=r"judge\.json: not a judge card: not ") as caught:
        Judge.load(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


def test_a_card_of_a_task_that_is_not_here_names_the_file(folder: Path) -> None:
    card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    (folder / "judge.json").write_text(json.dumps(card | {"tasks": {"newer": ["plain"]}}))
    with pytest.raises(CustosError, match=r"judge\.json: field 'task': 'newer' is not one of"):
        Judge.load(str(folder), device="cpu")
