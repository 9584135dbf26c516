"""Pairwise verdicts against people's, pairs judged by scores, and labels drawn anew."""

import math
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binomtest, fisher_exact

from evaluation.pairs.agreement import (
    PAIR_LABELS,
    mapped_back,
    measure_pairs,
    order_effects,
    self_consistency,
    verbosity_effect,
)
from evaluation.pairs.paradigms import (
    SampledJudge,
    draw_label,
    order_by_reward,
    order_by_score,
    ordered,
    sampled_requests,
)
from judging.scoring.engine import Sampling
from judging.types import JudgeRequest, LabelledExample, Pass, Verdict
from tests.evaluation.pairs.made_up import OTHER, in_both_orders, judged, pair

# People, judge: 9 scored pairs, 7 with a human winner.
LABELS = [
    ("A", "A"), ("A", "A"), ("A", "B"), ("A", "None"), ("B", "B"), ("B", "A"), ("B", "B"),
    ("None", "None"), ("None", "A"),
]  # fmt: skip


def records(
    labels: Sequence[tuple[str, str | None]],
) -> tuple[list[LabelledExample], list[Verdict]]:
    examples = [pair(human, str(i)) for i, (human, _) in enumerate(labels)]
    return examples, [judged(label, str(i)) for i, (_, label) in enumerate(labels)]


def test_by_hand() -> None:
    found = measure_pairs(*records(LABELS))
    assert {
        name: (found[name]["value"], found[name]["n"]) for name in found if "ece" not in name
    } == {
        "accuracy_ties_counted": (pytest.approx(5 / 9), 9),
        "accuracy_ties_excluded": (pytest.approx(4 / 7), 7),
        # Five agree, a tie by one side twice is worth one, two reversals nothing.
        "accuracy_ties_half": (pytest.approx(6 / 9), 9),
        # Chance: (4 * 4 + 3 * 3 + 2 * 2) / 81.
        "kappa": (pytest.approx((45 - 29) / (81 - 29)), 9),
        "fpr_ours": (pytest.approx(2 / 7), 7),
        "coverage": (1.0, 9),
    }
    for row in found.values():
        assert np.isnan(row["value"]) or row["low"] <= row["value"] <= row["high"]


def test_calibration_of_model_and_of_what_it_says() -> None:
    examples = [pair("A", str(i)) for i in range(40)]
    verdicts = [
        judged(
            "A" if i % 2 else "B", str(i), confidence=0.5, stated_confidence=0.9 if i < 30 else None
        )
        for i in range(40)
    ]
    found = measure_pairs(examples, verdicts)
    assert found["ece_model"]["value"] == pytest.approx(0)
    assert found["ece_stated"]["value"] == pytest.approx(0.4)
    assert (found["ece_model"]["n"], found["ece_stated"]["n"]) == (40, 30)


def test_stated_confidence_is_also_binned_as_published() -> None:
    """In a bin of equal width .95 and 1 are one confidence; equal mass parts them."""
    stated = [0.95] * 10 + [1.0] * 10
    verdicts = [
        judged("A" if i < 10 else "B", str(i), stated_confidence=confidence)
        for i, confidence in enumerate(stated)
    ]
    found = measure_pairs([pair("A", str(i)) for i in range(20)], verdicts)
    assert found["ece_stated"]["value"] == pytest.approx((0.05 + 1.0) / 2)
    assert found["ece_stated_equal_width"]["value"] == pytest.approx(0.975 - 0.5)
    assert found["ece_stated_equal_width"]["n"] == 20


@given(st.lists(st.lists(st.sampled_from(PAIR_LABELS), min_size=5, max_size=5), min_size=2))
def test_self_consistency_is_scipys_entropy(runs: list[list[str]]) -> None:
    expected = np.mean([stats.entropy([labels.count(x) for x in PAIR_LABELS]) for labels in runs])
    found = self_consistency(runs, range(len(runs)))
    assert found["value"] == pytest.approx(expected, abs=1e-12)
    assert -1e-12 <= found["value"] <= np.log(3) + 1e-12
    turned = [[OTHER[label] for label in reversed(labels)] for labels in runs]
    again = self_consistency(turned, range(len(runs)))
    assert again["value"] == pytest.approx(found["value"], abs=1e-12)


def test_an_entropy_is_nowhere_negative() -> None:
    """Nine rows on which five runs agree, and one on which they do not."""
    found = self_consistency([["A"] * 5] * 9 + [["A", "A", "A", "B", "B"]], range(10))
    assert 0 <= found["low"] < found["value"] < found["high"] <= math.log(5)


label = st.sampled_from(PAIR_LABELS)
# People; the judge in the given order, in the swapped one (own letters), and its verdict.
fourfold = st.lists(st.tuples(label, label, label, label), min_size=1, max_size=20)
Fourfold = list[tuple[str, str, str, str]]


def effects(rows: Fourfold, surer: float = 0.8) -> dict[str, object]:
    return order_effects(
        [pair(row[0], str(i)) for i, row in enumerate(rows)],
        [in_both_orders(*row[1:], id=str(i), surer=surer) for i, row in enumerate(rows)],
    )


def value(found: dict[str, object], *path: str) -> float:
    here: object = found
    for name in (*path, "value"):
        assert isinstance(here, dict)
        here = here[name]
    assert isinstance(here, float)
    return here


def test_a_swapped_pass_speaks_of_what_it_was_shown() -> None:
    posterior = {"A": 0.7, "B": 0.2, "None": 0.1}
    assert mapped_back(Pass(posterior=posterior)) == posterior
    swapped = mapped_back(Pass(order="swapped", posterior=posterior))
    assert swapped == {"B": 0.7, "A": 0.2, "None": 0.1}


def test_effects_of_the_order_by_hand() -> None:
    found = effects(
        [
            ("A", "A", "A", "A"),
            ("B", "A", "B", "B"),  # took the first both times
            ("B", "A", "B", "None"),
            ("None", "None", "B", "None"),
            ("A", "B", "B", "B"),  # wrong, but not by position
        ],
        surer=0.9,  # so the swapped order decides
    )
    assert value(found, "flip_rate") == pytest.approx(3 / 5)
    assert value(found, "accuracy", "given") == pytest.approx(2 / 5)
    assert value(found, "accuracy", "swapped") == pytest.approx(3 / 5)
    assert value(found, "accuracy", "merged") == pytest.approx(3 / 5)
    assert value(found, "merged_minus_given") == pytest.approx(1 / 5)
    # A's credit by the judge, given 1 1 1 .5 0, swapped 1 0 0 0 0; by people 1 0 0 .5 1.
    assert value(found, "bias", "given") == pytest.approx((3.5 - 2.5) / 5)
    assert value(found, "bias", "swapped") == pytest.approx((2.5 - 1) / 5)
    assert value(found, "bias", "both") == pytest.approx((3.5 - 1) / 10)
    assert found["test"] == {"only_given_right": 1, "only_merged_right": 2, "p": 1.0}


@given(fourfold)
def test_pairs_turned_round_swap_the_two_orders(rows: Fourfold) -> None:
    """The given order of the turned pair shows what the swapped order of the pair showed."""
    found = effects(rows)
    turned = effects([(OTHER[h], OTHER[s], OTHER[g], OTHER[m]) for h, g, s, m in rows])
    assert value(turned, "flip_rate") == value(found, "flip_rate")
    assert value(turned, "accuracy", "merged") == value(found, "accuracy", "merged")
    for one, other in (("given", "swapped"), ("swapped", "given")):
        assert value(turned, "accuracy", one) == value(found, "accuracy", other)
        assert value(turned, "bias", one) == pytest.approx(value(found, "bias", other))
    assert value(turned, "bias", "both") == pytest.approx(value(found, "bias", "both"))


@given(fourfold)
def test_mcnemar_counts_what_accuracies_differ_by(rows: Fourfold) -> None:
    found = effects(rows)
    split = found["test"]
    assert isinstance(split, dict)
    gain = (split["only_merged_right"] - split["only_given_right"]) / len(rows)
    assert value(found, "merged_minus_given") == pytest.approx(gain)
    changed = split["only_given_right"] + split["only_merged_right"]
    expected = binomtest(split["only_given_right"], changed).pvalue if changed else 1
    assert split["p"] == pytest.approx(expected)  # every pair is its own question


@pytest.mark.parametrize("movers", [2, 3, 4])
def test_leanings_on_few_pairs_leave_out_zero_only_where_tests_do(movers: int) -> None:
    """Few of 300 pairs move the leaning, all to one side, so its interval must hold 0."""
    assert binomtest(movers, movers).pvalue > 0.05
    people = ["B"] * movers + ["A", "B"] * 150
    said = ["A"] * movers + ["A", "B"] * 150
    examples = [pair(label, str(i), a="longer") for i, label in enumerate(people)]
    in_orders = [in_both_orders(label, label, label, str(i)) for i, label in enumerate(said)]
    given_bias = order_effects(examples, in_orders)["bias"]["given"]
    length = verbosity_effect(examples, in_orders)
    for leaning in (given_bias, length["preference"], length["difference"]):
        assert leaning["value"] > 0
        assert -1 <= leaning["low"] <= 0 < leaning["high"] <= 1
    table = [[movers, 150], [0, 150]]  # longer chosen where people chose the shorter; the reverse
    assert fisher_exact(table).pvalue > 0.05


def test_verbosity_by_hand() -> None:
    # People, judge, lengths of A and B.
    rows = [
        ("A", "B", 2, 9),  # people shorter, judge longer
        ("B", "B", 9, 2),  # both shorter
        ("A", "None", 2, 9),  # people shorter, judge tie
        ("A", "B", 9, 2),  # people longer, judge shorter
        ("B", "B", 2, 9),  # both longer
        ("A", "A", 9, 2),  # both longer
        ("None", "A", 9, 2),  # people tie, judge longer
        ("A", "B", 5, 5),  # same length
    ]
    examples = [
        pair(human, str(i), a="x" * a + " ", b="y" * b) for i, (human, _, a, b) in enumerate(rows)
    ]
    verdicts = [judged(row[1], str(i)) for i, row in enumerate(rows)]
    found = verbosity_effect(examples, verdicts)
    summary = {name: (row["value"], row["n"]) for name, row in found.items()}
    assert summary == {
        "preference": (pytest.approx((4.5 - 3.5) / 7), 7),
        "longer_against_people": (pytest.approx(1 / 3), 3),
        "shorter_against_people": (pytest.approx(1 / 3), 3),
        "difference": (pytest.approx(0), 6),
    }


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
