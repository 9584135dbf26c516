"""``custos eval`` of a running service, over a real socket."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from evaluation.outcomes import load_evaluation
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.backbones import load_backbone
from judging.types import JudgeRequest, Verdict
from judging.verdicts.calibration import Calibration, CalibrationSet, HeldOutVerdicts
from tests.clients.fake_server import FakeServer, Say, completion
from tests.conftest import Folders
from tests.forks import custos, forked
from tests.serve.made_up import FakeJudge, card_of, row
from tests.serve.sockets import serving_judges, wait_until

RESPONSES = ("Paris", "Rome", "Paris?", "Lyon", "in Paris", "Nice")
KEY = "a-key-of-sixteen-letters"
NOBODY = "http://127.0.0.1:9"


class ServedJudge(FakeJudge):
    """Is as sure in every batch, and fails on rows with 'Rome' while it is told to."""

    fails = False

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        if self.fails and "Rome" in request.response:
            return Verdict(id=request.id, status="judge_error", message="the server is down")
        return super().verdict_on(request, 0.9)

    def describe(self) -> dict[str, Any]:
        tasks = {"tasks": self.card.tasks} if self.card else {}
        return {**super().describe(), **tasks}

    @property
    def num_graded(self) -> int:
        return sum(map(len, self.batches))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Twelve answers; people disagree with the judge on the two that say 'Paris?'."""
    path = tmp_path / "labels.jsonl"
    write(path, 12)
    return path


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.report.plots.draw_report", lambda report, out_dir: [])


def write(path: Path, num_rows: int) -> None:
    lines = []
    for number in range(num_rows):
        response = RESPONSES[number % len(RESPONSES)]
        is_right = "Paris" in response and "?" not in response
        fields = {"label": "Correct" if is_right else "Wrong", "question": f"Which {number}?"}
        lines.append(json.dumps(row(response, **fields)) + "\n")
    path.write_text("".join(lines))


def run(judge: str, data: Path, out: Path, *options: str) -> Any:
    arguments = ["eval", judge, "--data", str(data), "--out", str(out), *options]
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


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


@pytest.mark.usefixtures("no_pictures")
def test_figures_are_those_of_the_same_judge_here(
    tiny_folders: Folders, data: Path, tmp_path: Path
) -> None:
    """Measure a calibrated judge of one reference mode, which the rows do not state."""
    judge = save_judge(tmp_path / "mine", tiny_folders("qwen2_5_vl"))
    options = ("--risk", ".1")
    here = run(str(tmp_path / "mine"), data, tmp_path / "here", *options, "--no-zero-shot")
    assert here.exit_code == 0, here.stderr
    with serving_judges({"mine": judge}) as url:
        there = run(url, data, tmp_path / "there", *options)
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


@pytest.mark.usefixtures("no_pictures")
def test_all_judges_of_a_service_are_named(data: Path, tmp_path: Path) -> None:
    judges = {"scores": ServedJudge(), "facts": ServedJudge(tasks=("chartom-fact",))}
    fact = row("40", task="chartom-fact", variant="number", references=["40"], label="Correct")
    data.write_text(f"{data.read_text()}{json.dumps(fact)}\n")
    with serving_judges(judges) as url:
        result = run(url, data, tmp_path / "out", "--no-zero-shot")
    assert result.exit_code == 0, result.stderr
    assert report_of(tmp_path / "out")["judge_names"] == ["facts", "scores"]
    assert result.stdout.splitlines()[3].startswith("facts, scores ")
    assert "untrained" not in result.stderr


@pytest.mark.usefixtures("no_pictures")
def test_kill_9_then_again_grades_nothing_twice(tmp_path: Path) -> None:
    data, out, judge = tmp_path / "labels.jsonl", tmp_path / "out", ServedJudge(pause_s=0.02)
    write(data, 60)
    partial = out / "report-verdicts.jsonl.partial"
    with serving_judges({"fake": judge}) as url:
        whole = run(url, data, tmp_path / "whole")
        assert (whole.exit_code, judge.num_graded) == (0, 60)
        judge.batches = []
        files = ("--data", str(data), "--out", str(out))
        with forked(custos, "eval", url, *files, "--batch", "4") as process:
            wait_until(lambda: partial.exists() and partial.read_bytes().count(b"\n") >= 8, 240)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert not (out / "report.json").exists()
        kept = {json.loads(line)["verdict"]["id"] for line in partial.open("rb")}
        assert len(kept) < 60
        judge.batches = []
        result = run(url, data, out, "--batch", "4")
    assert result.exit_code == 0, result.stderr
    assert not kept & {id for batch in judge.batches for id in batch}
    made, expected = report_of(out), report_of(tmp_path / "whole")
    assert made["seconds"] is None
    for report in (made, expected):
        del report["seconds"], report["items_per_second"]
    assert made == expected
    assert not partial.exists()


@pytest.mark.usefixtures("no_pictures")
def test_another_judge_at_the_address_is_not_mixed_in(data: Path, tmp_path: Path) -> None:
    """Keep verdicts of a service whose judge another one replaces."""
    first, second = ServedJudge("first"), ServedJudge("second")
    first.fails = True
    judges: dict[str, Judge] = {"first": first}
    with serving_judges(judges) as url:
        assert run(url, data, tmp_path / "out").exit_code == 1
        del judges["first"]
        judges["second"] = second
        result = run(url, data, tmp_path / "out")
    assert result.exit_code == 2
    assert "report-verdicts.jsonl.partial: line 1 is a result on something else" in result.stderr
    assert second.batches == []


@pytest.mark.usefixtures("no_pictures")
def test_failed_rows_are_kept_to_be_graded_again(data: Path, tmp_path: Path) -> None:
    out, judge = tmp_path / "out", ServedJudge()
    judge.fails = True
    with serving_judges({"fake": judge}) as url:
        result = run(url, data, out)
        assert result.exit_code == 1
        assert "error: 2 of 12 rows failed" in result.stderr
        [reason] = report_of(out)["unscored"]
        assert (reason["n"], reason["failed"]) == (2, True)
        assert "the judge could not grade this; the log has it under" in reason["message"]
        judge.fails, judge.batches = False, []
        assert run(url, data, out, "--retry-failed").exit_code == 0
    assert judge.num_graded == 2
    assert report_of(out)["unscored"] == []
    assert not list(out.glob("*.partial"))


@pytest.mark.usefixtures("no_pictures")
def test_labels_that_its_judges_cannot_give_stop_it_before_grading(tmp_path: Path) -> None:
    data, judge = tmp_path / "labels.jsonl", ServedJudge()
    judge.card = card_of({"hieval-qs": ("plain/any",)})
    data.write_text(json.dumps(row(label="Partial")) + "\n")
    with serving_judges({"fake": judge}) as url:
        result = run(url, data, tmp_path / "out", "--no-zero-shot")
    assert result.exit_code == 2
    assert f"judge '{url}': " in result.stderr
    assert "hieval-qs/plain/any does not declare 'Partial' (1 row" in result.stderr
    assert judge.batches == []


@pytest.mark.usefixtures("no_pictures")
def test_the_key_is_that_of_the_option(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with serving_judges({"fake": ServedJudge()}, keys=(KEY,)) as url:
        refused = run(url, data, tmp_path / "out")
        assert run(url, data, tmp_path / "out", "--key-env", "MY_KEY").exit_code == 0
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert f"error: {url}: " in refused.stderr
    assert not any(KEY in file.read_text() for file in (tmp_path / "out").iterdir())


@pytest.mark.usefixtures("no_pictures")
def test_a_chat_model_stands_beside_it(data: Path, tmp_path: Path) -> None:
    with FakeServer().running() as chat, serving_judges({"fake": ServedJudge()}) as url:
        chat.answer = lambda seen: Say(body=completion("Wrong"))
        options = ("--chat-model", "big", "--chat-url", chat.url)
        assert run(url, data, tmp_path / "out", *options).exit_code == 0
    beside = report_of(tmp_path / "out")["baselines"]["chat big"]
    assert beside["accuracy"]["value"] == pytest.approx(8 / 12)
    assert beside["gain"]["value"] == pytest.approx(2 / 12)


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
    result = run(NOBODY, data, tmp_path / "out", *options)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_several_services_are_refused(data: Path, tmp_path: Path) -> None:
    result = run(NOBODY, data, tmp_path / "out", "http://127.0.0.1:10")
    assert result.exit_code == 2
    assert "http://127.0.0.1:10" in result.stderr
