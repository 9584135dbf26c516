from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import Qwen2_5_VLForConditionalGeneration

from judging import judge as judge_module
from judging.card import JudgeCard, read_card
from judging.errors import CustosError
from judging.judge import Judge
from judging.models.adapters import add_adapter, load_adapter
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeModel, label_logprobs, make_tree_batch
from judging.tasks import base, get_task, judge_task
from judging.tasks.hieval_qs import HiEvalQuickScore
from judging.types import JudgeRequest, Verdict
from judging.verdicts.build import before_calibration
from judging.verdicts.calibration import Calibration, CalibrationSet
from tests.conftest import Folders
from tests.judging.made_up import ask

RUBRICS = ("plain/all", "plain/any", "tolerance/all")


@pytest.fixture(scope="module")
def run_folder(tiny_folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as training leaves it, with an adapter that moves every score."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    backbone = load_backbone(tiny_folders("qwen2_5_vl"), dtype="float32", device="cpu")
    adapted = add_adapter(backbone.model, r=4, alpha=8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.data = 0.05 * torch.randn_like(parameter)
    adapted.save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": RUBRICS}, response_budget=50)
    (folder / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    return folder


@pytest.fixture
def folder(run_folder: Path, tmp_path: Path) -> Path:
    """A copy of the run folder to change."""
    shutil.copytree(run_folder, tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture(scope="module")
def judge(run_folder: Path) -> Judge:
    return Judge.load(str(run_folder), dtype="float32", device="cpu")


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


def test_a_scored_verdict_is_complete(judge: Judge) -> None:
    [verdict] = judge.grade([ask(id="7")])
    assert (verdict.id, verdict.status, verdict.posterior) == ("7", "scored", "exact")
    assert list(verdict.probabilities) == ["Correct", "Partial", "Wrong"]
    assert sum(verdict.probabilities.values()) == pytest.approx(1, abs=1e-9)
    assert verdict.label == max(verdict.probabilities, key=lambda k: verdict.probabilities[k])
    assert verdict.confidence == max(verdict.probabilities.values())
    assert verdict.passes[0].posterior == verdict.probabilities
    tree = judge.encoder.tree(list(verdict.probabilities))
    prompts = judge.encoder.encode([(get_task("hieval-qs"), ask())])
    [scores] = np.exp(np.array(judge.engine.score(prompts, tree)))
    assert verdict.label_mass == pytest.approx(scores.sum(), rel=1e-4)
    [logprobs] = judge.logprobs([ask()])
    assert np.exp(logprobs).tolist() == pytest.approx(list(verdict.probabilities.values()))
    assert verdict.message is None


def test_an_error_analysis_verdict_has_score_type_and_marginals(tiny_folders: Folders) -> None:
    zero_shot = Judge.load(tiny_folders("qwen2_5_vl"), dtype="float32", device="cpu")
    analysed, empty = zero_shot.grade([ask(task="hieval-ea"), ask("", task="hieval-ea")])
    assert len(analysed.probabilities) == 11
    assert analysed.label in ("Correct", "Partial", "Wrong")
    full = f"{analysed.label}; {analysed.error_type}" if analysed.error_type else analysed.label
    assert analysed.confidence == analysed.probabilities[full]
    scores, types = analysed.marginals["score"], analysed.marginals["error_type"]
    assert sum(scores.values()) == pytest.approx(1, abs=1e-9)
    assert sum(types.values()) == pytest.approx(1 - scores["Correct"], abs=1e-9)
    assert scores["Wrong"] == pytest.approx(
        sum(p for label, p in analysed.probabilities.items() if label.startswith("Wrong; "))
    )
    assert analysed.label == max(scores, key=scores.__getitem__)
    assert (empty.label, empty.error_type) == ("Wrong", "Other")


def test_merging_keeps_the_adapters_scores(run_folder: Path, judge: Judge) -> None:
    backbone = load_backbone(judge.backbone.name, dtype="float32", device="cpu")
    task, encoder = get_task("hieval-qs"), Encoder(backbone)
    tree = encoder.tree(task.labels("plain/all"))
    prompts = encoder.encode([(task, ask()), (task, ask("18"))])
    batch = make_tree_batch(prompts, [tree] * 2, backbone.tokenizer.pad_token_id)
    with torch.inference_mode():
        bare = label_logprobs(TreeModel(backbone.model)(batch), tree)
        adapted = load_adapter(backbone.model, run_folder).eval()
        expected = label_logprobs(TreeModel(adapted)(batch), tree)
    found = torch.tensor(judge.engine.score(prompts, tree))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert (expected - bare).abs().max() > 0.1


def _mixed_requests() -> Iterator[JudgeRequest]:
    kinds: list[dict[str, Any]] = [
        {},
        {"response": ""},
        {"variant": "unheard"},
        {"reference_mode": "any"},
        {"response": "It is 18, no, 19, or maybe 20 apples"},
        {"images": ("missing.png",)},
        {"variant": "tolerance"},
    ]
    for i in range(23):
        fields = dict(kinds[i % len(kinds)])
        yield ask(fields.pop("response", f"{i} apples"), id=str(i), **fields)


def test_verdicts_come_in_order_whatever_happens_to_the_others(judge: Judge) -> None:
    verdicts = list(judge.grade(_mixed_requests()))
    assert [verdict.id for verdict in verdicts] == [str(i) for i in range(23)]
    for request, verdict in zip(_mixed_requests(), verdicts, strict=True):
        [alone] = judge.grade([request])
        assert (alone.status, alone.label, alone.message, alone.judge) == (
            verdict.status,
            verdict.label,
            verdict.message,
            verdict.judge,
        )
        assert alone.probabilities == pytest.approx(verdict.probabilities, abs=1e-4)


def test_grading_streams(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "WINDOW", 4)
    taken = 0

    def requests() -> Iterator[JudgeRequest]:
        nonlocal taken
        for request in _mixed_requests():
            taken += 1
            yield request

    verdicts = judge.grade(requests())
    assert taken == 0
    assert next(verdicts).id == "0"
    assert taken == 4
    assert [verdict.id for verdict in verdicts] == [str(i) for i in range(1, 23)]


def test_the_progress_bar_counts_verdicts_on_standard_error(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(judge_module, "WINDOW", 4)
    requests = list(_mixed_requests())
    verdicts = judge.grade(requests, progress=True)
    next(verdicts)
    verdicts.close()  # type: ignore[attr-defined]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "grading" in shown.err and "100%" not in shown.err
    assert len(list(judge.grade(requests, progress=True))) == len(requests)
    assert "100%" in capsys.readouterr().err


def test_no_requests_no_verdicts(judge: Judge) -> None:
    assert list(judge.grade([])) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "unheard"}, "field 'task': 'unheard' is not one of"),
        ({"variant": "unheard"}, "field 'variant': 'unheard' is not one of plain, tolerance"),
        ({"references": ()}, "field 'references'"),
        ({"images": ("missing.png",)}, "field 'images': 'missing.png' is not a readable picture"),
    ],
)
def test_requests_it_cannot_take(judge: Judge, fields: dict[str, Any], message: str) -> None:
    [verdict] = judge.grade([ask(id="x", **fields)])
    assert (verdict.id, verdict.status, verdict.label) == ("x", "invalid", None)
    assert message in str(verdict.message)
    assert verdict.probabilities == {}


def test_a_task_it_was_not_trained_for(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.TASKS, "entries", dict(base.TASKS.entries))

    class Other(HiEvalQuickScore):
        name = "other"

    judge_task(Other)
    [verdict] = judge.grade([ask(task="other")])
    assert verdict.status == "invalid"
    assert "'mine' was trained for hieval-qs, not 'other'" in str(verdict.message)


def test_a_rubric_it_was_not_trained_for(judge: Judge) -> None:
    assert judge.card
    narrow = judge.card.model_copy(update={"tasks": {"hieval-qs": ("plain/any",)}})
    judge = Judge(judge.name, judge.backbone, judge.engine, narrow)
    [verdict] = judge.grade([ask(reference_mode="all", references=("19", "20"))])
    assert verdict.status == "invalid"
    assert str(verdict.message).startswith("field 'reference_mode': judge 'mine' was trained")
    assert "trained for hieval-qs under plain/any, not plain/all" in str(verdict.message)
    [one], [other] = (judge.grade([ask(reference_mode=mode)]) for mode in ("all", "any"))
    assert one == other, "one reference means the same in both modes"
    assert (one.rubric, one.judge) == ("hieval-qs/plain/any", judge.fingerprint(ask()))
    [verdict] = judge.grade([ask(reference_mode="any", variant="tolerance")])
    assert str(verdict.message).startswith("field 'variant': ")


def test_a_judge_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(CustosError) as caught:
        Judge.load(str(tmp_path))
    message = str(caught.value)
    assert message.startswith(f"judge '{tmp_path}': judge.json is missing")


def test_every_verdict_names_its_judge_and_its_rubric(judge: Judge) -> None:
    scored, ruled, refused = judge.grade([ask(), ask(""), ask(variant="nowhere")])
    for verdict in (scored, ruled):
        assert (verdict.judge_name, verdict.rubric) == (judge.name, "hieval-qs/plain/all")
        assert verdict.judge == judge.fingerprint(ask())
    assert before_calibration(ask(), scored).rubric == scored.rubric
    assert (refused.status, refused.judge_name, refused.rubric) == ("invalid", judge.name, "")
    written = scored.model_dump(exclude={"judge_name", "rubric"})
    assert Verdict.model_validate(written).judge_name == "", "old files have no name"


def test_an_empty_response_is_decided_by_rule(judge: Judge) -> None:
    [verdict] = judge.grade([ask(" \n", id="e")])
    assert (verdict.id, verdict.status, verdict.label) == ("e", "scored", "Wrong")
    assert verdict.posterior is None
    assert verdict.confidence is None
    assert verdict.judge == judge.fingerprint(ask())


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


def test_a_changed_instruction_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = type(get_task("hieval-qs"))
    original = task.instruction
    monkeypatch.setattr(task, "instruction", lambda self, rubric: original(self, rubric) + "!")
    with pytest.raises(CustosError, match=r"instruction of 'hieval-qs/plain/all' has changed"):
        Judge.load(str(folder), device="cpu")


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


def test_only_safetensors_adapters_are_read(folder: Path) -> None:
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(CustosError, match=r"no adapter_model\.safetensors"):
        Judge.load(str(folder), device="cpu")


def test_an_adapter_of_another_shape_is_refused(folder: Path) -> None:
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | {"r": 8}), encoding="utf-8")
    with pytest.raises(CustosError, match="adapter does not fit the backbone"):
        Judge.load(str(folder), device="cpu")


def test_a_backbone_alone_is_a_zero_shot_judge(tiny_folder: str) -> None:
    judge = Judge.load(tiny_folder, dtype="float32", device="cpu")
    assert "hieval-qs" in judge.tasks
    assert judge.card is None
    [verdict] = judge.grade([ask()])
    assert verdict.status == "scored"


def test_shipped_judges_go_by_name(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judging.card.SHIPPED", run_folder.parent)
    monkeypatch.chdir(tmp_path)
    assert Judge.load("mine", device="cpu").name == "mine"


def test_a_judge_is_read_in_the_layout_of_its_card(folder: Path) -> None:
    card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    assert card["layout"] == "turns"
    turns = Judge.load(str(folder), device="cpu", dtype="float32")
    del card["layout"]  # as cards of earlier versions are
    (folder / "judge.json").write_text(json.dumps(card), encoding="utf-8")
    lines = Judge.load(str(folder), device="cpu", dtype="float32")
    assert (turns.encoder.layout, lines.encoder.layout) == ("turns", "lines")
    assert turns.identity != lines.identity
    assert turns.fingerprint(ask()) != lines.fingerprint(ask())
