"""``custos eval`` of a service, beside a chat model, and of judges of pairs."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from data_prep.splits.manifest import load_generic
from evaluation.outcomes import load_evaluation
from evaluation.pairs.paradigms import PARADIGMS, draw_label
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.backbones import load_backbone
from judging.scoring.ask_model import critique_sampling
from judging.scoring.engine import Sampling
from judging.types import MAX_CRITIQUE_TOKENS, JudgeRequest, Verdict
from judging.verdicts.calibration import Calibration, CalibrationSet, HeldOutVerdicts
from tests.cli.made_up import read_lines, succeed, write_lines
from tests.cli.measuring.made_up import label_of, report_of, run, write_answers
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.conftest import Folders
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving_judges

pytestmark = pytest.mark.usefixtures("no_pictures")
KEY = "a-key-of-sixteen-letters"


class ServedJudge(FakeJudge):
    """Is as sure in every batch."""

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        return super().verdict_on(request, 0.9)

    def describe(self) -> dict[str, Any]:
        tasks = {"tasks": self.card.tasks} if self.card else {}
        return {**super().describe(), **tasks}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_answers(tmp_path / "labels.jsonl", 6)


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
    assert f"{url}: the report cannot say whether the judge was trained" in there.stderr
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


CHAT_KEY = "secret-of-the-chat-model"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge(source))
    monkeypatch.setenv("CHAT_KEY", CHAT_KEY)
    with FakeServer().running() as server:
        server.answer = by_question_mark
        yield server


def by_question_mark(seen: Seen) -> Say:
    """Agree with people on all rows."""
    response = seen.text.rpartition("Response: ")[2]
    return Say(body=completion(label_of(response)))


def chat(fake: FakeServer, *models: str) -> list[str]:
    named = [word for model in models or ("big/model",) for word in ("--chat-model", model)]
    return [*named, "--chat-url", fake.url, "--chat-key-env", "CHAT_KEY"]


def test_a_chat_model_stands_beside_the_judge(fake: FakeServer, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(data, out, *chat(fake, "big/model", "other"))
    assert result.exit_code == 0
    report = report_of(out)
    assert {"chat big/model", "chat other"} <= report["baselines"].keys()
    beside = report["baselines"]["chat big/model"]
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(5 / 6)
    assert (beside["accuracy"]["value"], beside["accuracy"]["n"]) == (1, 6)
    assert beside["gain"]["value"] == pytest.approx(-1 / 6)
    assert (beside["judge_only_right"], beside["baseline_only_right"]) == (0, 1)
    assert {seen.headers["authorization"] for seen in fake.seen} == {f"Bearer {CHAT_KEY}"}
    assert Counter(seen.body["model"] for seen in fake.seen) == {"big/model": 6, "other": 6}
    assert "chat big/model" in result.stdout
    assert "| chat big/model |" in (out / "report.md").read_text()
    for file in out.iterdir():
        assert CHAT_KEY not in file.read_text(errors="replace")
    assert not list(out.glob("*.partial"))


def test_answers_that_were_paid_for_are_kept(fake: FakeServer, data: Path, tmp_path: Path) -> None:
    """Ask again only for the rows that failed, once the server is up."""
    out = tmp_path / "out"
    fake.answer = lambda seen: (
        Say(400, "no") if "Rome" in seen.text or "Nice" in seen.text else by_question_mark(seen)
    )
    first = run(data, out, *chat(fake))
    assert first.exit_code == 0
    beside = report_of(out)["baselines"]["chat big/model"]
    assert beside["coverage"]["value"] == pytest.approx(4 / 6)
    assert "2 failed, kept in" in first.output
    fake.answer = by_question_mark
    fake.seen.clear()
    assert run(data, out, *chat(fake), "--retry-failed").exit_code == 0
    assert len(fake.seen) == 2
    report = report_of(out)
    assert report["baselines"]["chat big/model"]["accuracy"]["n"] == 6
    assert not list(out.glob("*.partial"))


def test_a_chat_model_that_labels_nothing_is_an_error_and_the_judges_work_is_kept(
    fake: FakeServer, data: Path, tmp_path: Path
) -> None:
    fake.answer = lambda seen: Say(body=completion("I cannot say."))
    result = run(data, tmp_path / "out", *chat(fake))
    assert result.exit_code == 1
    assert "--chat-model big/model: no row got a label" in result.output
    assert (tmp_path / "out/report-verdicts.jsonl.partial").exists()


def test_a_card_shows_the_chat_model(fake: FakeServer, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "card"
    succeed("card", "run", "--data", f"mine={data}", "--out", out, *chat(fake))
    card = report_of(out, "reliability.json")
    assert card["data"]["mine"]["baselines"]["chat big/model"]["accuracy"]["value"] == 1


QUESTIONS = ("Which river is it?", "How many boats?", "Is it raining?")


@pytest.fixture
def fake_pairs() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        server.answer = by_turns(Counter())
        yield server


def by_turns(asked: Counter[str]) -> Any:
    """Agree with people where nothing is drawn; drawn labels differ from run to run of one pair."""

    def answer(seen: Seen) -> Say:
        is_drawn = seen.body["temperature"] == 0.7
        is_boats = "boats" in seen.text
        label = "A" if "Response A: green" in seen.text else "B"
        if is_drawn and is_boats:
            label = "AB"[asked["boats"] % 2]
            asked["boats"] += 1
        text = f"<critique>w</critique><label>{label}</label><confidence>.75</confidence>"
        return Say(body=completion(text))

    return answer


@pytest.fixture
def judge(small: str, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """A tiny random judge, whatever is to be loaded."""
    load = Judge.load
    loaded = load(small, dtype="float32", device="cpu")
    monkeypatch.setattr(
        Judge,
        "load",
        lambda source, **more: (
            load(source, dtype="float32", device="cpu") if source == "untrained" else loaded
        ),
    )
    return loaded


@pytest.fixture
def data_pairs(tmp_path: Path) -> Path:
    pair = {"task": "truthful-pair", "response_a": "green", "response_b": "brown", "label": "A"}
    asked = {"mode": "critique", "critique_tokens": 3}
    rows = [{**pair, **asked, "id": str(n), "question": q} for n, q in enumerate(QUESTIONS)]
    return write_lines(tmp_path / "pairs.jsonl", rows)


def run_pairs(data: Path, out: Path, *options: str) -> Any:
    return run(data, out, "--no-zero-shot", *options)


def chat_pairs(fake: FakeServer) -> list[str]:
    return ["--chat-model", "big", "--chat-url", fake.url]


def test_self_consistency_of_a_judge_and_of_a_chat_model(
    judge: Judge, fake_pairs: FakeServer, data_pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run_pairs(data_pairs, out, "--self-consistency", "4", *chat_pairs(fake_pairs))
    assert result.exit_code == 0
    measured = report_of(out)["self_consistency"]
    assert {name: (row["n"], row["runs"]) for name, row in measured.items()} == {
        judge.name: (3, 4),
        "chat big": (3, 4),
    }
    # One pair of three goes either way in half of the runs.
    assert measured["chat big"]["value"] == pytest.approx(math.log(2) / 3)
    assert 0 <= measured[judge.name]["value"] <= math.log(3)
    drawn = [seen.body for seen in fake_pairs.seen if seen.body["temperature"] == 0.7]
    assert len(drawn) == 12
    assert {body["top_p"] for body in drawn} == {0.95}
    assert len(fake_pairs.seen) == 12 + 6  # and every pair in both orders
    assert f"self-consistency of {judge.name}" in result.output
    assert "chat big" in (out / "report.md").read_text(encoding="utf-8").split("Self-cons")[1]
    assert not list(out.glob("*.partial"))


def test_a_judge_is_drawn_as_its_own_verdicts_say(
    judge: Judge, data_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeat the draws by hand, and find the entropy that the report has."""
    asked: list[tuple[Any, Sampling]] = []
    grade = Judge.grade

    def noting(self: Judge, requests: Any, **options: Any) -> Any:
        if sampling := options.get("sampling"):
            asked.extend((request, sampling) for request in requests)
        return grade(self, requests, **options)

    monkeypatch.setattr(Judge, "grade", noting)
    run_pairs(data_pairs, tmp_path / "out", "--self-consistency", "5")
    assert {sampling for _, sampling in asked} == {Sampling(3, 0.7, 0.95)}
    assert {request.order for request, _ in asked} == {"given"}
    assert len({request.seed for request, _ in asked}) == 15
    monkeypatch.setattr(Judge, "grade", grade)
    drawn: dict[str, list[str]] = {}
    for request, sampling in asked:
        [verdict] = judge.grade([request], calibrated=False, sampling=sampling)
        label = draw_label(verdict.probabilities, 0.7, 0.95, Random(f"label/{request.seed}"))
        drawn.setdefault(request.id, []).append(label)
    entropies = [
        -sum(k / 5 * math.log(k / 5) for k in Counter(labels).values()) for labels in drawn.values()
    ]
    found = report_of(tmp_path / "out")["self_consistency"][judge.name]
    assert found["value"] == pytest.approx(sum(entropies) / 3)


def test_the_papers_settings(
    judge: Judge, fake_pairs: FakeServer, data_pairs: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    limits: list[tuple[int, str]] = []
    monkeypatch.setattr("cli.eval.MAX_CRITIQUE_TOKENS", 5)  # a tiny model never ends
    grade = Judge.grade

    def noting(self: Judge, requests: Any, **options: Any) -> Any:
        asked = list(requests)
        limits.extend((each.critique_tokens, each.order) for each in asked)
        return grade(self, asked, **options)

    monkeypatch.setattr(Judge, "grade", noting)
    out = tmp_path / "out"
    assert run_pairs(data_pairs, out, "--as-published", *chat_pairs(fake_pairs)).exit_code == 0
    assert set(limits) == {(5, "given")}
    temperatures = Counter(seen.body["temperature"] for seen in fake_pairs.seen)
    assert temperatures == {0.05: 3, 0.7: 15}
    assert {row["runs"] for row in report_of(out)["self_consistency"].values()} == {5}


def test_how_the_papers_critiques_are_drawn(data_pairs: Path) -> None:
    changes = {"critique_tokens": MAX_CRITIQUE_TOKENS}
    request = load_generic(data_pairs, [])[0].request().model_copy(update=changes)
    assert critique_sampling(request) == Sampling(2048, temperature=0.1, top_p=1.0)


@pytest.mark.parametrize("paradigm", ["bradley-terry", "critique-score"])
def test_a_judge_of_single_responses_orders_pairs_by_its_scores(
    judge: Judge, data_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paradigm: str
) -> None:
    task = PARADIGMS[paradigm].task
    card = JudgeCard.for_rubrics(judge.backbone, {task: ("plain", "reference")}, 1024)
    monkeypatch.setattr(judge, "card", card)
    monkeypatch.setattr(Judge, "load_untrained", lambda self: Judge.load("untrained"))
    load = Judge.load
    untrained = type(judge)("untrained", judge.backbone, judge.engine)
    monkeypatch.setattr(
        Judge, "load", lambda source, **more: untrained if source == "untrained" else load(source)
    )
    out = tmp_path / "out"
    result = run_pairs(data_pairs, out, "--self-consistency", "2", "--zero-shot")
    assert result.exit_code == 0
    report = report_of(out)
    assert report["coverage"] == 1
    assert report["self_consistency"] == {}
    assert "higher score wins" in result.output
    rows = read_lines(out / "verdicts.jsonl")
    labels = {"A": 0, "B": 0, "None": 0}
    for example, line in zip(load_generic(data_pairs, []), rows, strict=True):
        singles = [
            example.request().model_copy(
                update={"task": task, "responses": (text,), "mode": PARADIGMS[paradigm].mode}
            )
            for text in example.responses
        ]
        a, b = (verdict.score for verdict in judge.grade(singles))
        assert a is not None
        assert b is not None
        assert line["label"] == ("A" if a > b else "B" if b > a else "None")
        labels[line["label"]] += 1
    # The same weights, untrained, are measured in the same way.
    assert report["baselines"]["zero_shot"]["accuracy"]["value"] == labels["A"] / 3


def test_the_papers_settings_are_for_pairs(judge: Judge, tmp_path: Path) -> None:
    row = {"question": "?", "references": ["a"], "response": "a", "label": "Correct"}
    path = write_lines(tmp_path / "rows.jsonl", [row])
    result = run_pairs(path, tmp_path / "out", "--as-published")
    assert result.exit_code == 2
    assert "field 'responses'" in result.output


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("--chat-model m", "--chat-model NAME and --chat-url URL go together"),
        ("--chat-url http://h/v1", "--chat-model NAME and --chat-url URL go together"),
        ("--chat-model m --chat-model m --chat-url http://h/v1", "--chat-model m: given twice"),
        ("--chat-model m --chat-url http://h/v1 --chat-key-env NO_SUCH", "'NO_SUCH': no such env"),
    ],
)
def test_options_that_do_not_go_together(
    data: Path, tmp_path: Path, options: str, fault: str
) -> None:
    result = run(data, tmp_path / "out", *options.split())
    assert result.exit_code == 2
    assert fault in result.stderr
