"""Pairs judged by the scores of their responses, and labels drawn anew."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.pairs.paradigms import (
    SampledJudge,
    draw_label,
    order_by_reward,
    order_by_score,
    ordered,
    sampled_requests,
)
from judging.scoring.engine import Sampling
from judging.types import JudgeRequest, Verdict

scores = st.floats(-1e4, 1e4, allow_nan=False)


def _scored(score: float | None, **posterior: float) -> Verdict:
    status: Any = "scored" if score is not None else "judge_error"
    probabilities = {name.removeprefix("s"): value for name, value in posterior.items()}
    return Verdict(id="x", status=status, score=score, probabilities=probabilities)


@given(scores, scores)
def test_rewards_order_pairs(a: float, b: float) -> None:
    found = order_by_reward(_scored(a), _scored(b))
    assert sum(found.values()) == pytest.approx(1)
    verdict = ordered("p", _scored(a), _scored(b), order_by_reward)
    assert verdict.label == ("A" if a > b else "B" if b > a else "None")
    assert found["A"] == pytest.approx(order_by_reward(_scored(b), _scored(a))["B"])
    assert order_by_reward(_scored(math.log(3)), _scored(0.0))["A"] == pytest.approx(0.75)


def test_scores_are_drawn_independently() -> None:
    first, second = _scored(6.0, s2=0.5, s10=0.5), _scored(9.0, s9=1.0)
    assert order_by_score(first, second) == pytest.approx({"A": 0.5, "B": 0.5, "None": 0.0})
    assert order_by_score(second, second) == pytest.approx({"A": 0.0, "B": 0.0, "None": 1.0})
    rng = Random(0)
    a = _scored(0.0, s1=0.2, s5=0.5, s7=0.3)
    b = _scored(0.0, s5=0.6, s6=0.4)
    exact, drawn = order_by_score(a, b), {"A": 0, "B": 0, "None": 0}
    for _ in range(20_000):
        x, y = (
            int(rng.choices(list(v.probabilities), list(v.probabilities.values()))[0])
            for v in (a, b)
        )
        drawn["A" if x > y else "B" if y > x else "None"] += 1
    for label, count in drawn.items():
        assert count / 20_000 == pytest.approx(exact[label], abs=0.015)


def test_a_response_without_a_score_leaves_its_pair_without_a_label() -> None:
    verdict = ordered("p", _scored(1.0), _scored(None), order_by_reward)
    assert (verdict.label, verdict.status) == (None, "judge_error")


def test_labels_are_sampled_from_the_sharpened_nucleus() -> None:
    posterior = {"A": 0.6, "B": 0.35, "None": 0.05}
    rng = Random(1)
    drawn = [draw_label(posterior, 0.7, 0.95, rng) for _ in range(20_000)]
    sharp = {label: p ** (1 / 0.7) for label, p in posterior.items()}
    total = sharp["A"] + sharp["B"]  # they reach .95 of it: None is outside the nucleus
    assert total / sum(sharp.values()) >= 0.95
    assert "None" not in drawn
    assert drawn.count("A") / 20_000 == pytest.approx(sharp["A"] / total, abs=0.015)
    assert {draw_label(posterior, 1.0, 0.5, rng) for _ in range(50)} == {"A"}


def request(id: str, tokens: int) -> JudgeRequest:
    return JudgeRequest(
        id=id,
        task="truthful-pair",
        question="Which?",
        responses=("red", "blue"),
        critique_tokens=tokens,
    )


def test_every_run_reads_a_pair_once_with_a_seed_of_its_own() -> None:
    asked = sampled_requests([request("p", 9), request("q", 9)], 5)
    assert [each.id for each in asked] == ["p"] * 5 + ["q"] * 5
    assert {each.order for each in asked} == {"given"}
    assert len({each.seed for each in asked}) == 10


class FakeJudge:
    """A judge that is sure of some pairs, and notes how it was asked to draw."""

    name = "fake"

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], Sampling, bool]] = []

    def fingerprint(self, request: JudgeRequest) -> str:
        return "same"

    def grade(
        self, requests: Iterable[JudgeRequest], *, calibrated: bool, sampling: Sampling
    ) -> Iterator[Verdict]:
        asked = list(requests)
        self.asked.append(([each.id for each in asked], sampling, calibrated))
        for each in asked:
            even = {"A": 0.4, "B": 0.35, "None": 0.25}
            given: dict[str, Any] = {"ruled": {}, "even": even}.get(each.id, {"B": 1.0})
            yield Verdict(id=each.id, status="scored", label="A", probabilities=given)


def test_labels_are_drawn_at_the_papers_settings() -> None:
    judge: Any = FakeJudge()
    asked = sampled_requests([request("even", 9), request("ruled", 9), request("sure", 700)], 40)
    verdicts = list(SampledJudge(judge).grade(asked))
    assert [verdict.id for verdict in verdicts] == [each.id for each in asked]
    by_id = {name: [v.label for v in verdicts if v.id == name] for name in ("even", "ruled")}
    assert set(by_id["even"]) == {"A", "B", "None"}
    assert set(by_id["ruled"]) == {"A"}
    assert {verdict.label for verdict in verdicts if verdict.id == "sure"} == {"B"}
    settings = [(sampling, calibrated) for _, sampling, calibrated in judge.asked]
    assert settings == [(Sampling(9, 0.7, 0.95), False), (Sampling(700, 0.7, 0.95), False)]
    assert [v.label for v in SampledJudge(judge).grade(asked)] == [v.label for v in verdicts]


def test_drawn_labels_are_kept_apart_from_the_judges_own() -> None:
    judge: Any = FakeJudge()
    assert SampledJudge(judge).fingerprint(request("even", 9)) != judge.fingerprint(
        request("even", 9)
    )
