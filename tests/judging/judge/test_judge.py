"""Judges: their verdicts, and the folder they are read from."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from transformers import Qwen2_5_VLForConditionalGeneration

from clients.judge_client import JudgeClient
from clients.pool import JudgePool
from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import read_card
from judging.models.adapters import ADAPTER_CONFIG
from judging.models.backbones import load_backbone
from judging.scoring import ask_model
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict
from judging.verdicts.build import before_calibration
from judging.verdicts.calibration import Calibration, CalibrationSet
from tests.conftest import Folders
from tests.judging.made_up import ask


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


def test_texts_are_encoded_in_one_call_and_one_too_long_costs_no_other(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["18", "It is nineteen.", "Twenty", "?"]
    alone = [verdict for answer in answers for verdict in judge.grade([ask(answer)])]
    encode, sizes = Encoder.encode, list[int]()

    def record(self: Encoder, requests: Sequence[Any]) -> list[EncodedPrompt]:
        sizes.append(len(requests))
        return encode(self, requests)

    monkeypatch.setattr(Encoder, "encode", record)
    rows = [ask(answer) for answer in answers]
    together = list(judge.grade(rows))
    assert sizes == [4]
    too_long = ask(question="How many apples? " * judge.encoder.backbone.context)
    *some, failed, last = judge.grade([*rows[:3], too_long, rows[3]])
    assert (failed.status, failed.label) == ("invalid", None)
    for verdicts in (together, [*some, last]):
        for verdict, expected in zip(verdicts, alone, strict=True):
            assert verdict.probabilities == pytest.approx(expected.probabilities, abs=1e-4)


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
    monkeypatch.setattr(ask_model, "CHUNK", 4)
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


def test_what_is_no_iterable_of_requests_is_said(judge: Judge) -> None:
    wrong: Any
    nowhere = "http://127.0.0.1:9"
    for grader in (judge, JudgeClient(nowhere, tries=1), JudgePool([nowhere])):
        for wrong, message in (
            (ask(), r"give one request as \[request\]"),
            ([{"question": "?"}], r"got 'dict'; JudgeRequest.model_validate\(row\) makes one"),
        ):
            with pytest.raises(TypeError, match=message):
                list(grader.grade(wrong))


def test_every_verdict_names_its_judge_and_its_rubric(judge: Judge) -> None:
    scored, ruled, refused = judge.grade([ask(), ask(""), ask(variant="nowhere")])
    for verdict in (scored, ruled):
        assert (verdict.judge_name, verdict.rubric) == (judge.name, "hieval-qs/plain/all")
        assert verdict.judge == judge.fingerprint(ask())
    assert before_calibration(ask(), scored).rubric == scored.rubric
    assert (refused.status, refused.judge_name, refused.rubric) == ("invalid", judge.name, "")
    assert (refused.label, refused.probabilities) == (None, {})
    assert "field 'variant': 'nowhere' is not one of plain, tolerance" in str(refused.message)
    [unknown] = judge.grade([ask(id="x", task="unheard")])
    assert (unknown.id, unknown.status) == ("x", "invalid")
    written = scored.model_dump(exclude={"judge_name", "rubric"})
    assert Verdict.model_validate(written).judge_name == "", "old files have no name"


@pytest.mark.parametrize("broken", [(0,), (2,), (0, 1, 2)])
def test_scores_that_are_not_numbers_decide_nothing(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, broken: tuple[int, ...]
) -> None:
    """Grade with scores that damaged weights give, for any of the labels."""
    score = judge.engine.score

    def damaged(prompts: Any, tree: Any, is_wanted: Any = None) -> Any:
        good, bad = score(prompts, tree, is_wanted)
        assert not isinstance(bad, CustosError)
        return [good, [math.nan if i in broken else value for i, value in enumerate(bad)]]

    monkeypatch.setattr(judge.engine, "score", damaged)
    good, bad = judge.grade([ask(), ask("18")])
    assert good.status == "scored"
    assert (bad.status, bad.label, bad.probabilities) == ("judge_error", None, {})
    assert (bad.message or "").startswith("the model's scores are not numbers")


def _load(folder: Path | str, dtype: Literal["float32", "bfloat16"] = "float32") -> Judge:
    return Judge.load(str(folder), dtype=dtype, device="cpu")


def _calibrate(folder: Path, judge: Judge, **bias: float) -> Judge:
    fitted = Calibration(temperature=4.0, bias=bias, n=9, nll_before=1, nll_after=1)
    calibration = CalibrationSet(judge=judge.identity, rubrics={"hieval-qs/plain/all": fitted})
    (folder / "calibration.json").write_text(calibration.model_dump_json(), encoding="utf-8")
    return _load(folder)


def test_positions_are_those_of_training(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded rotary frequencies would be off by radians at a distance of a thousand tokens."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
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
    config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    (folder / ADAPTER_CONFIG).write_text(json.dumps(config | {"lora_alpha": 5}))
    others.append(_load(folder).fingerprint(ask()))
    assert len({base_print, *others}) == 9


def test_a_folder_of_the_name_of_a_backbone_changes_nothing(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = replace(judge.backbone, name="qwen2.5-coder-0.5b")
    monkeypatch.setattr(judge, "backbone", named)
    monkeypatch.chdir(tmp_path)
    identity = judge.identity
    (tmp_path / named.name).mkdir()
    assert judge.identity == identity


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
        (b"\xff\xfe{}", r"judge\.json: not a judge card: not "),
        (b"[" * 200_000, r"judge\.json: not a judge card: not "),
    ],
)
def test_cards_that_do_not_fit(folder: Path, change: dict[str, Any] | bytes, message: str) -> None:
    if not isinstance(change, bytes):
        card = json.loads((folder / "judge.json").read_text(encoding="utf-8")) | change
        change = json.dumps(card).encode()
    (folder / "judge.json").write_bytes(change)
    with pytest.raises(CustosError, match=message) as caught:
        Judge.load(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


def test_the_progress_bar_counts_verdicts_on_standard_error(
    judge: Judge, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(list(judge.grade(list(_mixed_requests()), progress=True))) == 23
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "grading" in shown.err and "23/23" in shown.err
