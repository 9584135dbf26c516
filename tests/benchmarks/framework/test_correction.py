"""Scores corrected by people or by the judge's measured errors, and agreement with people."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import confusion_matrix

from benchmarks.framework.base import BENCHMARKS, get_benchmark
from benchmarks.framework.correction import (
    corrected_score,
    human_scores,
    judge_agreement,
    judged_score,
    known_errors,
)
from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import build_leaderboard, build_table
from benchmarks.framework.report.page import order_text, rate_charts, summary_lines
from evaluation.correction.judged import judged_rate, parse_errors
from evaluation.correction.scores import corrected_rate
from judging.errors import CustosError, FieldError
from judging.types import Verdict
from tests.benchmarks.test_charthal import CHARTHAL, item
from tests.benchmarks.test_chartom import CHARTOM
from tests.benchmarks.test_chartom import item as chart
from tests.benchmarks.test_hieval import HIEVAL
from tests.benchmarks.test_simplevqa import SIMPLEVQA
from tests.benchmarks.test_simplevqa import item as question

RUBRIC = "charthal/normal-open"


def graded(seed: int, count: int = 200) -> GradedModel:
    """Items under a judge that is right on 85 %, and what people said of the first 60."""
    rng = np.random.default_rng(seed)
    truth = rng.random(count) < 0.4
    said = np.where(rng.random(count) < 0.85, truth, ~truth)
    rows = []
    for number, (label, surety) in enumerate(zip(said, rng.uniform(0.5, 1, count), strict=True)):
        row = item(id=str(number), figure_id=number // 2, response="x")
        rows.append(CHARTHAL.graded_row(row, [verdict_of(str(int(label)), float(surety))]))
    people = [{"id": str(number), "score": int(truth[number])} for number in range(60)]
    return GradedModel(CHARTHAL, rows, people=people, random_sample=True)


def verdict_of(label: str, confidence: float = 0.75, **fields: Any) -> Verdict:
    return Verdict(status="scored", label=label, confidence=confidence, judge="j1", **fields)


@pytest.mark.parametrize("is_random", [True, False])
def test_the_correction_is_that_of_the_labels(is_random: bool) -> None:
    model = graded(1)
    chances = np.where(np.arange(len(model.rows)) < 20, 0.9, 0.2)
    if not is_random:
        drawn = zip(model.people, chances.tolist(), strict=False)
        people = [{**row, "sampling_probability": chance} for row, chance in drawn]
        model = replace(model, people=people, random_sample=False)
    judge = np.array([float(row["score"]) for row in model.rows])
    human = np.full(len(model.rows), np.nan)
    human[:60] = [row["score"] for row in model.people]
    expected = corrected_rate(
        judge,
        human,
        random_sample=is_random,
        probabilities=None if is_random else chances,
        groups=np.arange(len(model.rows)) // 2,
    )
    found = corrected_score(model)
    assert found["method"] == ("ppi++" if is_random else "weighted ppi++")
    for name in ("corrected", "raw", "labelled"):
        rate = getattr(expected, name)
        assert found[name] == pytest.approx(
            {"value": 100 * rate[0], "low": 100 * rate[1], "high": 100 * rate[2], "n": rate[3]}
        )
    assert (found["metric"], found["unscored"]) == ("score", 0)


def test_grades_of_which_some_have_no_probability_are_named_by_their_rows() -> None:
    """Nobody knows how many items such a grade stands for; a row without a grade needs none."""
    model = replace(graded(1), random_sample=False)
    people = [{**row, "sampling_probability": 0.5} for row in model.people]
    people[4:6] = model.people[4:6]
    people[9] = {"id": people[9]["id"]}
    with pytest.raises(FieldError) as error:
        corrected_score(replace(model, people=people))
    assert error.value.field == "sampling_probability"
    assert error.value.location == "rows 5, 6 of people"
    people[4:6] = [{**row, "sampling_probability": 0.5} for row in model.people[4:6]]
    assert corrected_score(replace(model, people=people))["labelled"]["n"] == 59


def test_labels_of_unknown_sampling_correct_nothing_but_show_the_agreement() -> None:
    model = graded(1)
    assert "not_corrected" not in build_table(model)
    unknown = replace(model, random_sample=False)
    table = build_table(unknown)
    assert "corrected" not in table and "--random-sample" in table["not_corrected"]
    assert table["not_corrected"] in summary_lines(table)
    assert np.sum(table["agreement"]["confusion"]["counts"]) == 60
    odd = [{**model.people[0], "sampling_probability": "often"}]
    with pytest.raises(FieldError) as error:
        build_table(replace(unknown, people=odd))
    assert error.value.field == "sampling_probability"


def test_what_people_cannot_have_said() -> None:
    model = graded(3, 100)
    with pytest.raises(CustosError, match="field 'id': no item 'zzz'"):
        corrected_score(replace(model, people=[*model.people, {"id": "zzz", "score": 1}]))
    with pytest.raises(CustosError, match="item 101: id '0' occurs twice"):
        corrected_score(replace(model, rows=[*model.rows, model.rows[0]]))
    row = {"id": "1", "question": "?", "references": ["a"], "response": "b", "label": "Wrong"}
    judged = HIEVAL.graded_row(row, [Verdict(status="judge_error")])
    with pytest.raises(CustosError, match="its items hold people's labels"):
        corrected_score(GradedModel(HIEVAL, [judged], people=[row], random_sample=True))
    row = {"question_id": "1", "response": "(A)", "ground_truth": "A"}
    truthful = get_benchmark("truthfulvqa")
    with pytest.raises(CustosError, match="graded by rule"):
        human_scores(GradedModel(truthful, [row], people=[{"question_id": "1"}]))


def test_agreement_counts_what_both_labelled() -> None:
    model = graded(4)
    found = judge_agreement(model)
    assert found is not None
    judge, human = ([str(row["score"]) for row in rows[:60]] for rows in (model.rows, model.people))
    assert found["confusion"]["labels"] == ["0", "1"]
    assert found["confusion"]["counts"] == confusion_matrix(human, judge).tolist()
    bins = found["calibration"]["after"]["bins"]
    assert sum(cell["n"] for cell in bins) == 60
    right = sum(cell["accuracy"] * cell["n"] for cell in bins)
    assert right == pytest.approx(sum(a == b for a, b in zip(judge, human, strict=True)))
    assert judge_agreement(replace(model, people=())) is None


def test_agreement_counts_items_without_an_id() -> None:
    asked = {"task": "hieval-qs", "question": "Who?", "references": ["A"], "response": "A"}
    rows: list[dict[str, Any]] = []
    for said in ("Correct", "Wrong", "Correct"):
        verdicts = {"hieval-qs": {"status": "scored", "label": said}}
        rows.append({**asked, "label": "Correct", "verdicts": verdicts})
    agreement = judge_agreement(GradedModel(HIEVAL, rows))
    assert agreement is not None
    assert agreement["confusion"]["counts"] == [[2, 1], [0, 0]]


GRADED = {
    "charthal": item(response="x", score=1),
    "chartom": chart(fact_response="1.2", fact_correct=True),
    "simplevqa": question(1, "A"),
}


def test_a_judges_grades_are_never_taken_for_peoples() -> None:
    for benchmark in BENCHMARKS:
        assert bool(benchmark.grade_fields) == (benchmark.name in GRADED)
    for name, row in GRADED.items():
        benchmark = get_benchmark(name)
        [own] = benchmark.scores([row])
        assert own.value == benchmark.full_score
        bare = GradedModel(benchmark, [row], people=[{benchmark.item_id: own.id}])
        assert human_scores(bare) == {}
        assert human_scores(replace(bare, people=[row])) == {own.id: own.value}


def test_a_wrong_answer_and_no_attempt_are_different_labels() -> None:
    """Both score 0, and only one of them is an attempt: CGA and F hang on the difference."""
    rows = [
        SIMPLEVQA.graded_row(question(n, response="x"), [verdict_of(label)])
        for n, label in enumerate(("Correct", "Incorrect", "Incorrect"))
    ]
    people = [{"data_id": n, "judge_res": {"people": c}} for n, c in enumerate("ABC")]
    agreement = judge_agreement(GradedModel(SIMPLEVQA, rows, people=people))
    assert agreement is not None
    assert agreement["confusion"]["labels"] == ["Correct", "Incorrect", "Not attempted"]
    assert agreement["confusion"]["counts"] == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_the_confidence_is_that_of_the_label_that_is_compared() -> None:
    """A judge that is right in .75 of its verdicts and says so has no calibration error."""
    rows, people = [], []
    for n in range(400):
        said = ("Incorrect", "Not attempted")[n % 2]
        rows.append(SIMPLEVQA.graded_row(question(n, response="x"), [verdict_of(said)]))
        people.append({"data_id": n, "judge_res": {"people": said if n % 4 else "Correct"}})
    agreement = judge_agreement(GradedModel(SIMPLEVQA, rows, people=people))
    assert agreement is not None
    assert agreement["calibration"]["after"]["ece"] < 0.02


def test_an_answer_that_a_rule_decides_has_no_confidence() -> None:
    """The one verdict on such a row is on the justification, which nobody compares here."""
    row = chart(
        id="P1_2", manipulation="3D", hmi=0.9, fact_response="1.2", mind_response="0.9. It is 3D."
    )
    rows = [CHARTOM.graded_row(row, [verdict_of("Named", 0.6)])]
    people = [{"id": "P1_2", "fact_correct": True}]
    agreement = judge_agreement(GradedModel(CHARTOM, rows, people=people))
    assert agreement is not None
    assert agreement["calibration"] is None


def errors(sensitivity: float, alarms: float, half: float = 0.05) -> dict[str, Any]:
    shares = {"sensitivity": sensitivity, "false_positive_rate": alarms}
    figures = {
        name: {"value": share, "low": max(0, share - half), "high": min(1, share + half), "n": 200}
        for name, share in shares.items()
    }
    return {"label": "1", "n": 400, "questions": 80, **figures}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"error_rates": {RUBRIC: errors(0.94, 0.15)}}))
    return path


def judged(
    said: npt.NDArray[Any], judge: str = "gpt", rubric: str = RUBRIC, **fields: Any
) -> GradedModel:
    """Items, two on each figure, that a judge gave 0 or 1."""
    rows = []
    for number, label in enumerate(said):
        verdict = verdict_of(str(int(label)), judge_name=judge, rubric=rubric)
        row = item("desc_normal", id=str(number), figure_id=number // 2, response="x")
        rows.append(CHARTHAL.graded_row(row, [verdict]))
    return GradedModel(CHARTHAL, rows, **fields)


def test_a_score_is_corrected_by_the_report_on_its_judge(report: Path) -> None:
    said = np.random.default_rng(0).random(200) < 0.4
    found = judged_score(judged(said, measured=report))
    known = parse_errors({RUBRIC: errors(0.94, 0.15)}, "")
    expected = judged_rate(said.astype(float), np.arange(200) // 2, [RUBRIC] * 200, known)
    assert found is not None
    for part in ("raw", "corrected"):
        assert found[part] == pytest.approx(expected.as_json(100)[part])
    assert found["corrected"]["value"] == pytest.approx(100 * (said.mean() - 0.15) / 0.79)
    assert found["added_width"] > 1
    assert found["source"] == "400 rows of report.json"


def test_what_a_run_knew_counts_for_its_own_judge_alone() -> None:
    run = {"judge": "mine", "error_rates": {RUBRIC: errors(0.94, 0.15)}}
    said = np.arange(100) % 2
    mine, another = (judged_score(judged(said, name, run=run)) for name in ("mine", "another"))
    assert mine and mine["corrected"]
    assert another and another["corrected"] is None
    with pytest.raises(CustosError, match="error_rates"):
        known_errors(judged(said, run={"error_rates": [1]}))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (judged(np.arange(40) % 2), f"not measured under {RUBRIC} by gpt"),
        (
            GradedModel(CHARTHAL, [item(id=str(n), figure_id=n, score=n % 2) for n in range(40)]),
            "errors are not known",
        ),
    ],
)
def test_a_judge_that_was_not_measured_leaves_the_word(model: GradedModel, reason: str) -> None:
    board = build_leaderboard(CHARTHAL, {"m": model})
    [table] = [table for table in board["tables"] if table["source"] == "Table 2"]
    assert table["columns"][-1] == "overall, corrected"
    [ours] = [row for row in table["rows"] if row["ours"]]
    assert ours["figures"][-1] == "uncorrected"
    [line] = [line for line in summary_lines(board["models"]["m"]) if "uncorrected" in line]
    assert reason in line
    assert rate_charts(CHARTHAL, board["models"]) == []


def test_two_models_under_a_measured_judge(report: Path) -> None:
    """The probability is that of resampled figures, as the same errors keep the order."""
    rng = np.random.default_rng(4)
    said = {"a": rng.random(120) < 0.55, "b": rng.random(120) < 0.45}
    models = {name: judged(labels, measured=report) for name, labels in said.items()}
    board = build_leaderboard(CHARTHAL, models)
    order = board["order"]
    by_figure = [labels.reshape(-1, 2).sum(axis=1) for labels in said.values()]
    picks = rng.integers(60, size=(4000, 60))
    a, b = (sums[picks].sum(axis=1) for sums in by_figure)
    higher = np.mean(a > b) + np.mean(a == b) / 2
    expected = higher if said["a"].mean() > said["b"].mean() else 1 - higher
    assert order["same_order"] == order["same_winner"] == pytest.approx(expected, abs=0.03)
    assert order["uncorrected"] == []
    assert "with probability" in order_text(order)
    assert len(rate_charts(CHARTHAL, board["models"])) == 1


def test_people_on_a_sample_say_how_likely_their_order_is() -> None:
    """The judge is blind to which model is better, and people are not."""
    rng = np.random.default_rng(5)
    truth = {"good": rng.random(400) < 0.8, "bad": rng.random(400) < 0.3}
    models = {}
    for name, labels in truth.items():
        said = np.where(rng.random(400) < 0.1, labels, rng.random(400) < 0.5)
        people = [{"id": str(n), "score": int(labels[n])} for n in range(0, 400, 4)]
        models[name] = judged(said, people=people, random_sample=True)
    board = build_leaderboard(CHARTHAL, models)
    raw = {name: table["judged"]["raw"]["value"] for name, table in board["models"].items()}
    probability = board["order"]["same_order"]
    assert (probability > 0.99) == (raw["good"] > raw["bad"])
    assert probability > 0.99 or probability < 0.01
    corrected = board["models"]["good"]["corrected"]
    widths = [
        np.ptp([corrected[part][end] for end in ("low", "high")]) for part in ("corrected", "raw")
    ]
    assert corrected["added_width"] == pytest.approx(widths[0] - widths[1])
    mixed = build_leaderboard(CHARTHAL, models | {"bad": judged(truth["bad"])})["order"]
    assert (mixed["same_order"], mixed["uncorrected"]) == (None, ["bad"])
    assert order_text(mixed) == "Ranking uncorrected, as are the scores of bad"


def test_models_that_are_corrected_in_different_ways_are_on_one_scale(report: Path) -> None:
    """One is corrected by the judge's errors, from .8 to .82; people give the other one .3."""
    rng = np.random.default_rng(7)
    better, worse = rng.random(200) < 0.8, rng.random(200) < 0.3
    people = [{"id": str(n), "score": int(worse[n])} for n in range(0, 200, 2)]
    models = {
        "better": judged(better, measured=report),
        "worse": judged(worse, people=people, random_sample=True),
    }
    board = build_leaderboard(CHARTHAL, models)
    corrected = {
        "better": board["models"]["better"]["judged"]["corrected"],
        "worse": board["models"]["worse"]["corrected"]["corrected"],
    }
    assert corrected["better"]["low"] > corrected["worse"]["high"]
    assert board["order"]["same_order"] == board["order"]["same_winner"] > 0.99


def test_grades_that_were_likelier_to_be_drawn_weigh_less_in_the_ranking() -> None:
    """People mostly saw what the judge calls wrong."""
    rng = np.random.default_rng(6)
    truth = {"one": rng.random(400) < 0.6, "other": rng.random(400) < 0.6}
    models, shares, chances = {}, {}, {}
    for name, labels in truth.items():
        said = np.where(rng.random(400) < 0.7, labels, rng.random(400) < 0.5)
        chances[name] = np.where(said, 0.2, 0.8)
        drawn = rng.random(400) < chances[name]
        people = [
            {"id": str(n), "score": int(labels[n]), "sampling_probability": chances[name][n]}
            for n in np.flatnonzero(drawn)
        ]
        models[name] = judged(said, people=people)
        shares[name] = drawn / chances[name], labels, said, drawn
    board = build_leaderboard(CHARTHAL, models)
    assert {table["corrected"]["method"] for table in board["models"].values()} == {
        "weighted ppi++"
    }
    powers = {name: table["corrected"]["power"] for name, table in board["models"].items()}

    def score(name: str, rows: npt.NDArray[Any]) -> float:
        weights, labels, said, drawn = (of_row[rows] for of_row in shares[name])
        among = np.average(said, weights=weights)
        others = (said.sum() - drawn.sum() * among) / (~drawn).sum()
        return float(np.average(labels, weights=weights) - powers[name] * (among - others))

    wins = []
    for _ in range(2000):
        figures = rng.integers(200, size=200)
        rows = np.concatenate([2 * figures, 2 * figures + 1])
        wins.append(score("one", rows) > score("other", rows))
    best = max(models, key=lambda name: board["models"][name]["judged"]["raw"]["value"])
    expected = np.mean(wins) if best == "one" else 1 - np.mean(wins)
    assert 0.05 < expected < 0.95
    assert board["order"]["uncorrected"] == []
    assert board["order"]["same_order"] == pytest.approx(expected, abs=0.04)
