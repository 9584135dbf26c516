import time

import numpy as np
import pytest

from evaluation.declared_labels import label_set
from evaluation.intervals import wilson_interval
from evaluation.measure import error_types, measure, measure_error_types
from evaluation.outcomes import Outcomes, gather
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import (
    TYPED_LABELS,
    evaluation,
    example,
    scored,
    typed_records,
    unscored,
)


def outcomes(examples: list[LabelledExample], verdicts: list[Verdict]) -> Outcomes:
    return gather(examples, verdicts, label_set(examples, verdicts))


def numbered(*labels: str) -> list[LabelledExample]:
    return [example(label, id=str(i), question=f"q{i}") for i, label in enumerate(labels)]


def test_unscored_items_are_neither_right_nor_wrong() -> None:
    examples = numbered("Correct", "Wrong", "Wrong", "Correct")
    verdicts = [scored("Correct", 0.9, id="0"), scored("Correct", 0.6, id="1"), unscored("2")]
    verdicts.append(scored("Correct", id="3"))
    measured = measure(outcomes(examples, verdicts))
    values = {name: (metric["value"], metric["n"]) for name, metric in measured.items()}
    assert values["accuracy"] == (pytest.approx(2 / 3), 3)
    assert values["accuracy_unscored_as_wrong"] == (0.5, 4)
    assert values["coverage"] == (0.75, 4)
    assert values["fpr"] == (1.0, 1)
    assert values["brier"] == (pytest.approx((2 * 0.1**2 + 2 * 0.6**2) / 2), 2)
    assert values["nll"] == (pytest.approx((-np.log(0.9) - np.log(0.4)) / 2), 2)
    assert values["ece"] == (pytest.approx((0.1 + 0.6) / 2), 2)


def test_the_posterior_of_an_abstention_is_in_no_metric() -> None:
    examples = numbered("Correct", "Wrong")
    posterior = {"Correct": 0.5, "Wrong": 0.5}
    abstention = Verdict(id="1", status="abstain", probabilities=posterior, message="unsure")
    measured = measure(outcomes(examples, [scored("Correct", 1.0, id="0"), abstention]))
    for name in ("brier", "nll", "ece"):
        assert (measured[name]["value"], measured[name]["n"]) == (0, 1)


def test_nothing_scored_gives_nan_everywhere_but_in_coverage() -> None:
    examples = numbered("Correct", "Wrong")
    measured = measure(outcomes(examples, [unscored("0"), unscored("1")]))
    assert measured.pop("coverage")["value"] == 0
    assert measured.pop("accuracy_unscored_as_wrong")["value"] == 0
    assert all(np.isnan(metric["value"]) for metric in measured.values())


def test_intervals_hold_their_value_and_repeat() -> None:
    judged = outcomes(*evaluation(unscored_every=9))
    measured = measure(judged, seed=3)
    chance = measured["ece"]["chance"]
    assert np.isnan([measured["ece"]["low"], measured["ece"]["high"]]).all()
    assert 0 < chance["mean"] < chance["high"]
    for name, metric in measured.items():
        if name != "ece":
            assert metric["low"] <= metric["value"] <= metric["high"]
            assert metric["low"] < metric["high"]
    measured["ece"].update(low=None, high=None)
    again = measure(judged, seed=3)
    again["ece"].update(low=None, high=None)
    assert again == measured
    assert measure(judged, seed=4)["kappa"] != measured["kappa"]


def test_interval_against_a_plain_bootstrap_over_questions() -> None:
    judged = outcomes(*evaluation(questions=80, accuracy=0.75))
    low, high = (measure(judged, ("kappa",))["kappa"][end] for end in ("low", "high"))
    rng, kappas = np.random.default_rng(11), []
    for _ in range(1000):
        rows = np.concatenate(
            [np.flatnonzero(judged.clusters == c) for c in rng.integers(80, size=80)]
        )
        human, predicted = judged.human[rows], judged.predicted[rows]
        observed = np.mean(human == predicted)
        expected = sum(np.mean(human == k) * np.mean(predicted == k) for k in (0, 1))
        kappas.append((observed - expected) / (1 - expected))
    # Two sets of 1,000 draws: quantiles differ by a tenth of the width at most.
    assert (low, high) == pytest.approx(np.quantile(kappas, [0.025, 0.975]), abs=0.03)


def test_a_faultless_judge_still_gets_a_width() -> None:
    examples, verdicts = evaluation(accuracy=1.0)
    measured = measure(outcomes(examples, verdicts))
    # 180 items on 60 questions: surer than 60 items, less sure than 180.
    low = measured["accuracy"]["low"]
    assert wilson_interval(60, 60).low < low < wilson_interval(180, 180).low
    assert measured["accuracy"]["high"] == 1
    assert measured["fpr"]["value"] == 0
    assert measured["fpr"]["high"] > 0.05
    assert measured["accuracy"]["se"] == 0


def test_error_types_are_measured_apart_from_scores() -> None:
    labels = ("Correct", "Wrong; Other", "Wrong; Overthinking", "Partial; Other")
    examples = [row.model_copy(update={"task": "hieval-ea"}) for row in numbered(*labels)]
    verdicts = [
        scored("Wrong; Other", id="0"),
        scored("Wrong", id="1", error_type="Other"),
        scored("Wrong; Other", id="2"),
        scored("Wrong; Other", id="3"),
    ]
    measured = measure(outcomes(examples, verdicts))
    assert measured["accuracy"]["value"] == pytest.approx(1 / 4)
    assert measured["score_accuracy"]["value"] == pytest.approx(2 / 4)
    assert measured["type_accuracy"]["value"] == pytest.approx(2 / 3)
    assert measured["type_accuracy"]["n"] == 3
    assert measured["fpr"]["value"] == 0
    assert "type_accuracy" not in measure(outcomes(*evaluation()))


def test_a_thousand_resamples_of_fifteen_thousand_items_take_seconds() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), size=15_000)
    judged = Outcomes(
        labels=("Correct", "Partial", "Wrong"),
        human=rng.integers(3, size=15_000),
        predicted=probabilities.argmax(axis=1),
        probabilities=probabilities,
        confidence=probabilities.max(axis=1),
        clusters=np.arange(15_000) // 5,
    )
    start = time.process_time()
    measure(judged)
    assert time.process_time() - start < 10


def test_shares_of_error_types_by_hand() -> None:
    found = measure_error_types(gather(*typed_records(), TYPED_LABELS))
    assert {kind: (row["value"], row["n"]) for kind, row in found.items()} == {
        "Reasoning Error": (0.5, 4),
        "Other": (1.0, 2),
    }
    for row in found.values():
        assert row["low"] <= row["value"] <= row["high"]


def test_labels_without_types_have_none() -> None:
    examples, verdicts = typed_records()
    assert error_types(("Correct", "Wrong")) == ()
    outcomes = gather(examples[:1], verdicts[:1], ("Correct", "Wrong"))
    assert measure_error_types(outcomes) == {}
