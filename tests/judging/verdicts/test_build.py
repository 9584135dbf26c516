"""Verdicts on pairs, of rules, and rewards of critiques by hand."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from evaluation.baselines import verdicts_of_rules
from judging.errors import CustosError
from judging.tasks import get_task
from judging.tasks.base import CritiqueFormat
from judging.types import JudgeRequest, LabelledExample, Pass, Verdict
from judging.verdicts.build import (
    CritiqueScorer,
    RuleGrader,
    critique_in,
    make_verdict,
    merge_passes,
)
from tests.judging.made_up import ask

REQUEST = JudgeRequest(task="truthful-pair", question="q", responses=("nine", "ten"))
FIRST = "Response A is right; Response B is wrong."
SECOND = "Response B is right; Response A is wrong."


def shown(a: float, b: float, critique: str | None = None, **fields: Any) -> Pass:
    posterior = {"A": a, "B": b, "None": 1 - a - b}
    return Pass.model_validate({"posterior": posterior, "critique": critique, **fields})


def verdict(*passes: Pass, note: str | None = None) -> Verdict:
    task = get_task("truthful-pair")
    return make_verdict(
        REQUEST,
        task,
        passes,
        merge_passes(task, passes),
        label_mass=1,
        posterior="exact",
        truncated_input=False,
        note=note,
    )


def test_the_critique_is_that_of_the_surer_pass_that_agrees() -> None:
    given, swapped = shown(0.9, 0.05, FIRST), shown(0.01, 0.95, SECOND, order="swapped")
    merged = verdict(given, swapped)
    assert (merged.label, merged.needs_review, merged.message) == ("A", False, None)
    assert merged.critique == FIRST, "the swapped pass decides; its names are turned back"
    assert merged.passes[1].critique == SECOND, "passes keep their texts as shown"
    assert verdict(shown(0.99, 0.0, "A is best."), swapped).critique == "A is best."


@pytest.mark.parametrize(("given", "label"), [((0.6, 0.3), "B"), ((0.99, 0.0), "A")])
def test_where_the_orders_disagree_the_critique_is_of_the_one_that_decides(
    given: tuple[float, float], label: str
) -> None:
    # In the swapped order A is the response that the request calls B.
    merged = verdict(shown(*given, FIRST), shown(0.9, 0.05, FIRST, order="swapped"))
    assert (merged.label, merged.needs_review) == (label, True)
    assert merged.critique == (SECOND if label == "B" else FIRST)
    assert str(merged.message).startswith(
        "the two orders disagree: the label is A with A shown first, B with B shown first"
    )


def test_a_pass_that_agrees_goes_before_one_that_is_surer_of_another_label() -> None:
    # The request's A gets .45 of the first pass, which says B, and .4 of the second, which says A.
    merged = verdict(
        shown(0.45, 0.5, "one"), shown(0.2, 0.4, "Response B is right.", order="swapped")
    )
    assert merged.label == "A"
    assert merged.critique == "Response A is right."


def test_all_that_is_to_know_stands_in_one_line() -> None:
    tie = verdict(shown(0.46, 0.45))
    assert not tie.needs_review
    assert tie.message == "A (0.46) and B (0.45) are about equally likely"
    assert verdict(shown(0.5, 0.4)).message is None
    cut = verdict(shown(0.46, 0.45, "text", finish_reason="length"), note="untrained")
    assert cut.message == f"the critique hit its budget; untrained; {tie.message}"


def simplevqa(response: str) -> JudgeRequest:
    fields = {"task": "simplevqa", "variant": "english", "references": ("Johannes Vermeer",)}
    return ask(response, id="1", question="Who painted this?", **fields)


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("It was johannes vermeer!", "Correct"),
        ("Rembrandt", "Incorrect"),
        ("I don't know.", "Not attempted"),
        ("抱歉，我不知道。", "Not attempted"),
        ("I am not sure, but I would say Johannes Vermeer.", "Correct"),
    ],
)
def test_simplevqa(response: str, label: str) -> None:
    [verdict] = RuleGrader().grade([simplevqa(response)])
    assert (verdict.id, verdict.status, verdict.label) == ("1", "scored", label)
    blank = simplevqa("Rembrandt").model_copy(update={"references": (" ", "Vermeer")})
    assert next(RuleGrader().grade([blank])).label == "Incorrect"


@pytest.mark.parametrize(
    ("variant", "references", "choices", "response", "label"),
    [
        ("number", ("40 mm",), (), "4 cm", "Correct"),
        ("number", ("1,200 km",), (), "1200000 m", "Correct"),
        ("number", ("40%",), (), "60 %", "Incorrect"),
        ("number", ("40 mm",), (), "41 or 90", None),
        # A key that is no single number is left to a judge.
        *(("number", (key,), (), "40", None) for key in ("many", "40-50 mm", "40 or more")),
        *(("number", (key,), (), "40", None) for key in ("10, 20", "40 (35 to 45)")),
        ("choice", ("Elm",), ("Ash", "Elm"), "2", "Correct"),
        ("choice", ("Elm",), ("Ash", "Elm"), "Ash", "Incorrect"),
        ("ranking", ("Ash", "Elm", "Fir"), (), "Ash, Elm, Fir", "Correct"),
        ("ranking", ("Ash", "Elm", "Fir"), (), "no idea", None),
    ],
)
def test_chartom_reads_requests_as_it_reads_items(
    variant: str,
    references: tuple[str, ...],
    choices: tuple[str, ...],
    response: str,
    label: str | None,
) -> None:
    given = {"task": "chartom-fact", "variant": variant, "choices": choices}
    question = "Rank them from largest to smallest." if variant == "ranking" else "Which?"
    request = ask(response, question=question, references=references, **given)
    [verdict] = RuleGrader().grade([request])
    assert verdict.label == label
    assert verdict.status == ("scored" if label else "abstain")


def test_examples_of_other_tasks_get_no_label() -> None:
    row = LabelledExample(**simplevqa("Rembrandt").model_dump(), label="Incorrect")
    other = row.model_copy(update={"task": "hieval-qs"})
    by_rules = verdicts_of_rules([row, other])
    assert by_rules
    assert [verdict.label for verdict in by_rules] == ["Incorrect", None]
    assert verdicts_of_rules([other]) is None


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
