"""``custos eval`` of a running service, over a real socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.outcomes import load_evaluation
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.backbones import load_backbone
from judging.types import JudgeRequest, Verdict
from judging.verdicts.calibration import Calibration, CalibrationSet, HeldOutVerdicts
from tests.cli.measuring.made_up import report_of, run, write_answers
from tests.conftest import Folders
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving_judges

pytestmark = pytest.mark.usefixtures("no_pictures")
KEY = "a-key-of-sixteen-letters"
NOBODY = "http://127.0.0.1:9"


class ServedJudge(FakeJudge):
    """Is as sure in every batch."""

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        return super().verdict_on(request, 0.9)

    def describe(self) -> dict[str, Any]:
        tasks = {"tasks": self.card.tasks} if self.card else {}
        return {**super().describe(), **tasks}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_answers(tmp_path / "labels.jsonl", 12)


def save_judge(folder: Path, backbone_folder: str) -> Judge:
    """Write and load a run folder whose judge is calibrated, with thresholds for a stated risk."""
    from judging.models.adapters import add_adapter

    backbone = load_backbone(backbone_folder, dtype="bfloat16", device="cpu")
    add_adapter(backbone.model, r=2, alpha=2).save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": ("plain/any",)}, 1024)
    (folder / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    identity = Judge.load(str(folder), device="cpu").identity
    fitted = Calibration(
        temperature=1.5, bias={"Correct": 0.5, "Wrong": -0.5}, n=9, nll_before=1, nll_after=1
    )
    held_out = HeldOutVerdicts(confidence=(0.5,) * 60 + (0.99,) * 60, right=(True,) * 120)
    key = "hieval-qs/plain/any"
    calibration = CalibrationSet(judge=identity, rubrics={key: fitted}, held_out={key: held_out})
    (folder / "calibration.json").write_text(calibration.model_dump_json(), encoding="utf-8")
    return Judge.load(str(folder), device="cpu")


def test_figures_are_those_of_the_same_judge_here(
    tiny_folders: Folders, data: Path, tmp_path: Path
) -> None:
    """Measure a calibrated judge of one reference mode, which the rows do not state."""
    judge = save_judge(tmp_path / "mine", tiny_folders("qwen2_5_vl"))
    options = ("--risk", ".1")
    here = run(data, tmp_path / "here", *options, "--no-zero-shot", judge=str(tmp_path / "mine"))
    assert here.exit_code == 0, here.stderr
    with serving_judges({"mine": judge}) as url:
        there = run(data, tmp_path / "there", *options, judge=url)
    assert there.exit_code == 0, there.stderr
    expected, report = report_of(tmp_path / "here"), report_of(tmp_path / "there")
    assert report["seconds"] > 0
    assert (expected["seen_data"], report["seen_data"]) == ({"file": None, "rows": None}, None)
    for made in (expected, report):
        for key in ("seconds", "items_per_second", "command", "seen_data"):
            del made[key]
    assert report["coverage"] == 1 and report["judge_names"] == ["mine"]
    assert report["calibration"]["before"] != report["calibration"]["after"]
    assert report["abstention"]["risk"] == 0.1
    assert report == expected
    assert load_evaluation(tmp_path / "there") == load_evaluation(tmp_path / "here")
    assert (tmp_path / "there" / "disagreements.csv").read_text() == (
        (tmp_path / "here" / "disagreements.csv").read_text()
    )
    assert there.stdout.splitlines()[3].startswith("mine ")
    assert f"{url}: the report cannot say whether the judge was trained on these rows" in (
        there.stderr
    )
    assert "its untrained model is not measured\n" in there.stderr


def test_all_judges_of_a_service_are_named(data: Path, tmp_path: Path) -> None:
    judges = {"scores": ServedJudge(), "facts": ServedJudge(tasks=("chartom-fact",))}
    fact = row("40", task="chartom-fact", variant="number", references=["40"], label="Correct")
    data.write_text(f"{data.read_text()}{json.dumps(fact)}\n")
    with serving_judges(judges) as url:
        result = run(data, tmp_path / "out", "--no-zero-shot", judge=url)
    assert result.exit_code == 0, result.stderr
    assert report_of(tmp_path / "out")["judge_names"] == ["facts", "scores"]
    assert result.stdout.splitlines()[3].startswith("facts, scores ")
    assert "untrained" not in result.stderr


def test_the_key_is_that_of_the_option(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with serving_judges({"fake": ServedJudge()}, keys=(KEY,)) as url:
        refused = run(data, tmp_path / "out", judge=url)
        assert run(data, tmp_path / "out", "--key-env", "MY_KEY", judge=url).exit_code == 0
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert f"error: {url}: " in refused.stderr
    assert not any(KEY in file.read_text() for file in (tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), f"error: {NOBODY}: no answer ("),
        (("--engine", "openai"), f"error: {NOBODY}: a service runs its own model; leave out"),
        (("--base-url", "http://127.0.0.1:9/v1"), f"{NOBODY}: a service runs its own model"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(
    data: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    result = run(data, tmp_path / "out", *options, judge=NOBODY)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr
    assert not (tmp_path / "out").exists()
