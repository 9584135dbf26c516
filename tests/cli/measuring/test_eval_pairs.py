"""``custos eval`` of judges of pairs: self-consistency, and the paper's settings."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from data_prep.splits.manifest import load_generic
from evaluation.pairs.paradigms import PARADIGMS, draw_label
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.scoring.ask_model import critique_sampling
from judging.scoring.engine import Sampling
from judging.types import MAX_CRITIQUE_TOKENS
from tests.cli.measuring.made_up import report_of
from tests.cli.measuring.made_up import run as evaluate
from tests.clients.fake_server import FakeServer, Say, Seen, completion

pytestmark = pytest.mark.usefixtures("no_pictures")
QUESTIONS = ("Which river is it?", "How many boats?", "Is it raining?")


@pytest.fixture
def fake() -> Iterator[FakeServer]:
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
def data(tmp_path: Path) -> Path:
    rows = [
        {
            "id": str(number),
            "task": "truthful-pair",
            "question": question,
            "response_a": "green",
            "response_b": "brown",
            "label": "A",
            "mode": "critique",
            "critique_tokens": 3,
        }
        for number, question in enumerate(QUESTIONS)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def run(data: Path, out: Path, *options: str) -> Any:
    return evaluate(data, out, "--no-zero-shot", *options)


def chat(fake: FakeServer) -> list[str]:
    return ["--chat-model", "big", "--chat-url", fake.url]


def test_self_consistency_of_a_judge_and_of_a_chat_model(
    judge: Judge, fake: FakeServer, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run(data, out, "--self-consistency", "4", *chat(fake))
    assert result.exit_code == 0
    measured = report_of(out)["self_consistency"]
    assert {name: (row["n"], row["runs"]) for name, row in measured.items()} == {
        judge.name: (3, 4),
        "chat big": (3, 4),
    }
    # One pair of three goes either way in half of the runs.
    assert measured["chat big"]["value"] == pytest.approx(math.log(2) / 3)
    assert 0 <= measured[judge.name]["value"] <= math.log(3)
    drawn = [seen.body for seen in fake.seen if seen.body["temperature"] == 0.7]
    assert len(drawn) == 12
    assert {body["top_p"] for body in drawn} == {0.95}
    assert len(fake.seen) == 12 + 6  # and every pair in both orders
    assert f"self-consistency of {judge.name}" in result.output
    assert "chat big" in (out / "report.md").read_text(encoding="utf-8").split("Self-cons")[1]
    assert not list(out.glob("*.partial"))


def test_a_judge_is_drawn_as_its_own_verdicts_say(
    judge: Judge, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeat the draws by hand, and find the entropy that the report has."""
    asked: list[tuple[Any, Sampling]] = []
    grade = Judge.grade

    def noting(self: Judge, requests: Any, **options: Any) -> Any:
        if sampling := options.get("sampling"):
            asked.extend((request, sampling) for request in requests)
        return grade(self, requests, **options)

    monkeypatch.setattr(Judge, "grade", noting)
    run(data, tmp_path / "out", "--self-consistency", "5")
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
    judge: Judge,
    fake: FakeServer,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[tuple[int, str]] = []
    monkeypatch.setattr("cli.eval.MAX_CRITIQUE_TOKENS", 5)  # a tiny model never ends
    grade = Judge.grade

    def noting(self: Judge, requests: Any, **options: Any) -> Any:
        asked = list(requests)
        limits.extend((each.critique_tokens, each.order) for each in asked)
        return grade(self, asked, **options)

    monkeypatch.setattr(Judge, "grade", noting)
    out = tmp_path / "out"
    assert run(data, out, "--as-published", *chat(fake)).exit_code == 0
    assert set(limits) == {(5, "given")}
    temperatures = Counter(seen.body["temperature"] for seen in fake.seen)
    assert temperatures == {0.05: 3, 0.7: 15}
    assert {row["runs"] for row in report_of(out)["self_consistency"].values()} == {5}


def test_how_the_papers_critiques_are_drawn(data: Path) -> None:
    changes = {"critique_tokens": MAX_CRITIQUE_TOKENS}
    request = load_generic(data, [])[0].request().model_copy(update=changes)
    assert critique_sampling(request) == Sampling(2048, temperature=0.1, top_p=1.0)


@pytest.mark.parametrize("paradigm", ["bradley-terry", "critique-score"])
def test_a_judge_of_single_responses_orders_pairs_by_its_scores(
    judge: Judge, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paradigm: str
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
    result = run(data, out, "--self-consistency", "2", "--zero-shot")
    assert result.exit_code == 0
    report = report_of(out)
    assert report["coverage"] == 1
    assert report["self_consistency"] == {}
    assert "higher score wins" in result.output
    rows = [json.loads(line) for line in (out / "verdicts.jsonl").read_text().splitlines()]
    labels = {"A": 0, "B": 0, "None": 0}
    for example, row in zip(load_generic(data, []), rows, strict=True):
        singles = [
            example.request().model_copy(
                update={"task": task, "responses": (text,), "mode": PARADIGMS[paradigm].mode}
            )
            for text in example.responses
        ]
        a, b = (verdict.score for verdict in judge.grade(singles))
        assert a is not None
        assert b is not None
        assert row["label"] == ("A" if a > b else "B" if b > a else "None")
        labels[row["label"]] += 1
    # The same weights, untrained, are measured in the same way.
    assert report["baselines"]["zero_shot"]["accuracy"]["value"] == labels["A"] / 3


def test_the_papers_settings_are_for_pairs(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {"question": "?", "references": ["a"], "response": "a", "label": "Correct"}
    path.write_text(json.dumps(row), encoding="utf-8")
    result = run(path, tmp_path / "out", "--as-published")
    assert result.exit_code == 2
    assert "field 'responses'" in result.output
