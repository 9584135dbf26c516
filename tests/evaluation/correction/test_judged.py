"""Judged rates that are corrected by the judge's measured errors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from evaluation.correction.judged import (
    ErrorRates,
    Figure,
    added_width,
    error_rates,
    errors_of_judge,
    judged_rate,
    ranked_scores,
    read_errors,
    rogan_gladen,
)
from evaluation.correction.scores import Rate
from tests.evaluation.drawn import Judging
from tests.evaluation.made_up import example, scored
from tests.judging.tasks.made_up import Grounded, declare


def figure(value: float, half: float = 0.0, n: int = 400) -> Figure:
    return Figure(value=value, low=max(0.0, value - half), high=min(1.0, value + half), n=n)


def errors(sensitivity: Figure, alarms: Figure) -> ErrorRates:
    return ErrorRates(
        label="Correct", sensitivity=sensitivity, false_positive_rate=alarms, n=800, questions=80
    )


def test_a_true_rate_shows_through_the_readmes_errors() -> None:
    """A judge with these errors shows a true 30 % as 39 % and a true 90 % as 86 %."""
    known = errors(figure(0.94, 0.02), figure(0.15, 0.05))
    for truth in (0.3, 0.9):
        shown = truth * 0.94 + (1 - truth) * 0.15
        found = rogan_gladen(Rate(shown, shown - 0.04, shown + 0.04, 500), known)
        assert found is not None
        assert found.value == pytest.approx(truth)
        assert found.low < truth < found.high


def test_ends_are_where_the_three_intervals_stop_contradicting_the_rate() -> None:
    """Solved again by bisection on the difference of the judged and the expected share."""
    judged = Rate(0.5, 0.41, 0.6, 120)
    s = Figure(value=0.92, low=0.85, high=0.95, n=90)
    f = Figure(value=0.1, low=0.06, high=0.19, n=70)
    found = rogan_gladen(judged, errors(s, f))
    assert found is not None
    assert s.value and s.low and s.high and f.value and f.low and f.high

    def slack(rate: float, q_end: float, s_end: float, f_end: float) -> float:
        expected = rate * s.value + (1 - rate) * f.value  # type: ignore[operator]
        parts = (q_end - 0.5, rate * (s_end - s.value), (1 - rate) * (f_end - f.value))  # type: ignore[operator]
        return (0.5 - expected) ** 2 - sum(part**2 for part in parts)

    point = 0.4 / 0.82
    assert found.value == pytest.approx(point)
    assert found.low == pytest.approx(brentq(slack, 0, point, args=(0.41, s.high, f.high)))
    assert found.high == pytest.approx(brentq(slack, point, 1, args=(0.6, s.low, f.low)))


@pytest.mark.parametrize(
    ("questions", "rows", "rate", "sensitivity", "alarms", "likeness"),
    [(89, 5, 0.9, 0.85, 0.3, 0.1), (30, 5, 0.5, 0.96, 0.13, 0.3), (400, 1, 0.1, 0.99, 0.01, 0.0)],
)
def test_the_corrected_interval_holds_the_truth(
    questions: int, rows: int, rate: float, sensitivity: float, alarms: float, likeness: float
) -> None:
    setting = Judging(questions, rows, rate, (sensitivity, alarms), likeness)
    corrected = setting.coverage(150, np.random.default_rng(0))
    # 150 draws of a coverage of .95 fall below .89 once in a thousand times.
    assert np.mean(corrected) > 0.89


def test_rubrics_are_corrected_each_by_its_own_errors() -> None:
    rng = np.random.default_rng(1)
    known = {
        "good": errors(figure(0.98, 0.02), figure(0.02, 0.02)),
        "bad": errors(figure(0.8, 0.05), figure(0.3, 0.05)),
    }
    rubrics = ["good"] * 600 + ["bad"] * 300 + [None] * 100
    shown = {"good": 0.5 * 0.98 + 0.5 * 0.02, "bad": 0.2 * 0.8 + 0.8 * 0.3, None: 0.9}
    hits = np.array([rng.random() < shown[rubric] for rubric in rubrics], float)
    found = judged_rate(hits, np.arange(1000), rubrics, known)
    shares = [hits[:600].mean(), hits[600:900].mean(), hits[900:].mean()]
    expected = 0.6 * (shares[0] - 0.02) / 0.96 + 0.3 * (shares[1] - 0.3) / 0.5 + 0.1 * shares[2]
    assert found.corrected is not None
    assert found.corrected.value == pytest.approx(expected)
    truth = 0.6 * 0.5 + 0.3 * 0.2 + 0.1 * 0.9
    assert found.corrected.low < truth < found.corrected.high
    assert found.raw.low > truth
    assert added_width(found.raw._asdict(), found.corrected._asdict()) > 0
    alone = judged_rate(hits, np.arange(1000), [None] * 1000, {})
    assert alone.corrected == pytest.approx(alone.raw)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({}, "not measured under r"),
        ({"r": errors(figure(0.6, 0.1), figure(0.5, 0.1))}, "not clearly above"),
        (
            {"r": errors(figure(0.9, 0.1), Figure(value=None, low=None, high=None, n=0))},
            "both right and wrong",
        ),
        ({"r": errors(figure(0.9, 0.01), figure(0.85, 0.01))}, "cannot give"),
    ],
)
def test_what_cannot_be_corrected_says_why(known: dict[str, ErrorRates], reason: str) -> None:
    hits = np.repeat([1.0, 0.0], [30, 170])
    found = judged_rate(hits, np.arange(200), ["r"] * 200, known)
    assert found.corrected is None
    assert reason in found.source
    shown = found.as_json(100)
    assert (shown["corrected"], shown["added_width"]) == (None, None)
    assert shown["raw"]["value"] == pytest.approx(15)


def report_on(rows: list[tuple[str, str]], **fields: Any) -> dict[str, dict[str, Any]]:
    examples = [
        example(people, id=str(n), question=f"q{n // 3}", **fields)
        for n, (people, _) in enumerate(rows)
    ]
    verdicts = [scored(judge, id=str(n)) for n, (_, judge) in enumerate(rows)]
    return error_rates(examples, verdicts)


def test_errors_are_measured_on_the_best_label_of_each_rubric() -> None:
    counts = {
        ("Correct", "Correct"): 40,
        ("Correct", "Partial"): 10,
        ("Partial", "Correct"): 6,
        ("Partial", "Partial"): 14,
        ("Wrong", "Wrong"): 20,
    }
    rows = [pair for pair, count in counts.items() for _ in range(count)]
    [(rubric, measured)] = report_on(rows).items()
    assert rubric == "hieval-qs/plain/all"
    assert measured["label"] == "Correct"
    assert measured["sensitivity"]["value"] == pytest.approx(0.8)
    assert measured["false_positive_rate"]["value"] == pytest.approx(6 / 40)
    assert (measured["sensitivity"]["n"], measured["false_positive_rate"]["n"]) == (50, 40)
    assert (measured["n"], measured["questions"]) == (90, 30)
    # The judge's own errors on the very rows give people's rate, with the error that they bring.
    judged = measured["judged"]
    assert judged["raw"]["value"] == pytest.approx(46 / 90)
    assert judged["corrected"]["value"] == pytest.approx(measured["people"]["value"])
    assert judged["added_width"] > 0


def test_pairs_and_scales_have_no_ranked_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch)
    for rubric, best in (
        ("hieval-qs/plain/any", ["Correct"]),
        ("hieval-ea/plain/all", ["Correct"]),
        ("charthal/irrelevant", ["1"]),
        ("grounded/plain", ["Grounded"]),
        ("truthful-pair/plain", []),
        ("truthful-critique-score/plain", []),
        ("another/plain", []),
        ("", []),
    ):
        assert ranked_scores(rubric)[:1] == best, rubric
    monkeypatch.setattr(Grounded, "label_set", ("A", "B", "C"))
    assert ranked_scores("grounded/plain") == ["A", "B", "C"]


def test_all_labels_have_shares_where_there_are_more_than_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declare(monkeypatch)
    best, middle, worst = Grounded.label_set
    rows = [(best, best)] * 4 + [(middle, best)] * 2 + [(worst, middle), (worst, worst)]
    [measured] = report_on(rows, task="grounded").values()
    values = {
        label: [share[side]["value"] for side in ("people", "judge")]
        for label, share in measured["shares"].items()
    }
    assert values == {best: [0.5, 0.75], middle: [0.25, 0.125], worst: [0.25, 0.125]}
    assert measured["shares"][best]["people"] == measured["people"]
    [typed] = report_on([("Wrong; Other", "Partial; Other")], task="hieval-ea").values()
    assert [*typed["shares"]] == ["Correct", "Partial", "Wrong"]
    [two] = report_on([("Polite", "Rude")] * 3, task="politeness").values()
    assert "shares" not in two


def test_a_card_wins_over_a_report_and_its_first_data_set_over_the_next(tmp_path: Path) -> None:
    one = errors(figure(0.9), figure(0.1)).model_dump()
    two, three = ({**one, "n": n} for n in (2, 3))
    card = {"data": {"people": {"error_rates": {"a": one}}, "made": {"error_rates": {"a": two}}}}
    (tmp_path / "reliability.json").write_text(json.dumps(card))
    (tmp_path / "report.json").write_text(json.dumps({"error_rates": {"a": two, "b": three}}))
    found = read_errors(tmp_path)
    assert {rubric: (rates.n, rates.source) for rubric, rates in found.items()} == {
        "a": (800, "800 rows of people"),
        "b": (3, "3 rows of report.json"),
    }
    assert read_errors(tmp_path / "report.json")["a"].n == 2
    (tmp_path / "old").mkdir()
    assert read_errors(tmp_path / "old") == {}


def test_shipped_judges_say_how_they_err() -> None:
    known = errors_of_judge("embedded-qs")["hieval-qs/plain/any"]
    assert known.label == "Correct"
    assert known.sensitivity.value == pytest.approx(313 / 326)
    assert known.false_positive_rate.value == pytest.approx(17 / 119)
    assert errors_of_judge("../embedded-qs") == errors_of_judge("") == {}
