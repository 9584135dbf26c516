"""Rewards of critiques, by hand."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from judging.errors import CustosError
from judging.tasks.base import CritiqueFormat
from judging.types import JudgeRequest, LabelledExample, Pass, Verdict
from judging.verdicts.critiques import CritiqueScorer, critique_in

AGREES = ({"A": 0.8, "B": 0.1, "None": 0.1}, {"A": 0.3, "B": 0.6, "None": 0.1})
"""Probabilities as each order was shown: both say that the first response is better."""
FLIPS = ({"A": 0.8, "B": 0.1, "None": 0.1}, {"A": 0.6, "B": 0.3, "None": 0.1})


class Fixed:
    """A judge that finds the same after every critique, and keeps what it was asked."""

    def __init__(self, *posteriors: dict[str, float], **fields: Any) -> None:
        orders = ("given", "swapped")
        passes = [
            Pass(order=order, posterior=posterior)
            for order, posterior in zip(orders, posteriors, strict=False)
        ]
        self.verdict = Verdict.model_validate(
            {"status": "scored", "posterior": "exact", "passes": passes, **fields}
        )
        self.asked: list[JudgeRequest] = []

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        for request in requests:
            self.asked.append(request)
            yield self.verdict


def labelled(label: str = "A", **fields: Any) -> LabelledExample:
    given: dict[str, Any] = {
        "id": "7",
        "task": "truthful-pair",
        "question": "Which?",
        "responses": ("green", "brown"),
        "label": label,
    }
    return LabelledExample.model_validate(given | fields)


def test_the_mean_over_both_orders() -> None:
    """In the swapped order the labels are exchanged."""
    found = {}
    for label in ("A", "B", "None"):
        [score] = CritiqueScorer(Fixed(*AGREES)).score([labelled(label)], ["A it is."])
        assert score and not score.flips
        assert score.reward == pytest.approx(sum(score.logprobs) / 2)
        found[label] = [math.exp(logprob) for logprob in score.logprobs]
    assert found["A"] == pytest.approx([0.8, 0.6])
    assert found["B"] == pytest.approx([0.1, 0.3])
    assert found["None"] == pytest.approx([0.1, 0.1])
    [score] = CritiqueScorer(Fixed({"A": 1.0, "B": 0.0, "None": 0.0})).score([labelled("B")], [""])
    assert score and math.isfinite(score.reward)
    ruled = Fixed(posterior=None, label=None, status="not_judgeable")
    assert CritiqueScorer(ruled).score([labelled()], [""]) == [None], "a rule gives no reward"


@pytest.mark.parametrize("penalty", [0.0, 2.5])
def test_a_flip_costs_the_penalty(penalty: float) -> None:
    [score] = CritiqueScorer(Fixed(*FLIPS), penalty).score([labelled("A")], [""])
    assert score
    assert score.flips
    assert score.reward == pytest.approx((math.log(0.8) + math.log(0.3)) / 2 - penalty)


def test_what_the_judge_is_asked() -> None:
    judge = Fixed(*AGREES)
    example = labelled(mode="score", order="given", critique="gold", risk=0.1, critique_tokens=3)
    CritiqueScorer(judge).score([example], ["drawn"])
    [asked] = judge.asked
    assert type(asked) is JudgeRequest, "neither label nor gold critique goes to the judge"
    assert (asked.mode, asked.order, asked.given_critique) == ("critique", "both", "drawn")
    assert (asked.risk, asked.critique_tokens) == (None, 2048)


@pytest.mark.parametrize(
    ("judge", "example", "words"),
    [
        (Fixed(status="judge_error", message="down"), labelled(), "row '7': down"),
        (Fixed(*AGREES, posterior="approximate"), labelled(), "no exact probabilities"),
        (Fixed(*AGREES), labelled("Correct"), "'Correct' is not one of A, B, None"),
    ],
)
def test_no_reward_without_exact_probabilities(
    judge: Fixed, example: LabelledExample, words: str
) -> None:
    with pytest.raises(CustosError, match=words):
        CritiqueScorer(judge).score([example], [""])


@pytest.mark.parametrize(
    ("answer", "critique"),
    [
        ("<critique>A is.</critique><label>A</label>", "A is."),
        ("A is.</critique>", "A is."),
        ("<critique>cut in the mid", "cut in the mid"),
        ("no tags", "no tags"),
        ("a</critique>b</critique>", "a"),
        ("", ""),
    ],
)
def test_the_critique_in_an_answer(answer: str, critique: str) -> None:
    assert critique_in(answer, CritiqueFormat()) == critique
