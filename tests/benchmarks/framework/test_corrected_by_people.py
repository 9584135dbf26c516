"""Scores corrected by people, and agreement with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from benchmarks.framework.base import benchmark_names, get_benchmark
from benchmarks.framework.correction import corrected_score, human_scores, judge_agreement
from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import build_table
from benchmarks.framework.report.text import summary_lines
from evaluation.correction.scores import corrected_rate
from judging.errors import CustosError, FieldError
from judging.types import Verdict
from tests.benchmarks.charthal.test_benchmark import item
from tests.benchmarks.chartom.test_benchmark import item as chart
from tests.benchmarks.simplevqa.made_up import item as question

CHARTHAL = get_benchmark("charthal")


def graded(seed: int, count: int = 200) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Items under a judge that is right on 85 %, and what people said of the first 60."""
    rng = np.random.default_rng(seed)
    truth = rng.random(count) < 0.4
    said = np.where(rng.random(count) < 0.85, truth, ~truth)
    rows = []
    for number, (label, surety) in enumerate(zip(said, rng.uniform(0.5, 1, count), strict=True)):
        verdict = Verdict(
            status="scored", label=str(int(label)), confidence=float(surety), judge="j1"
        )
        row = item(id=str(number), figure_id=number // 2, response="x")
        rows.append(CHARTHAL.graded_row(row, [verdict]))
    people = [{"id": str(number), "score": int(truth[number])} for number in range(60)]
    return rows, people


@pytest.mark.parametrize("is_random", [True, False])
def test_the_correction_is_that_of_the_labels(is_random: bool) -> None:
    rows, people = graded(1)
    chances = np.where(np.arange(len(rows)) < 20, 0.9, 0.2)
    if not is_random:
        for row, chance in zip(people, chances.tolist(), strict=False):
            row["sampling_probability"] = chance
    judge = np.array([float(row["score"]) for row in rows])
    human = np.full(len(rows), np.nan)
    human[:60] = [row["score"] for row in people]
    groups = np.arange(len(rows)) // 2
    expected = corrected_rate(
        judge,
        human,
        random_sample=is_random,
        probabilities=None if is_random else chances,
        groups=groups,
    )
    found = corrected_score(CHARTHAL, rows, people, is_random)
    assert found["method"] == ("ppi++" if is_random else "weighted ppi++")
    for name in ("corrected", "raw", "labelled"):
        rate = getattr(expected, name)
        assert found[name] == pytest.approx(
            {"value": 100 * rate[0], "low": 100 * rate[1], "high": 100 * rate[2], "n": rate[3]}
        )
    assert (found["metric"], found["unscored"]) == ("score", 0)


def test_labels_of_unknown_sampling_correct_nothing_but_show_the_agreement() -> None:
    rows, people = graded(1)
    table = build_table(CHARTHAL, GradedModel("x", rows, people))
    assert "corrected" not in table and "--random-sample" in table["not_corrected"]
    assert table["not_corrected"] in summary_lines(table)
    assert np.sum(table["agreement"]["confusion"]["counts"]) == 60
    assert "not_corrected" not in build_table(CHARTHAL, GradedModel("x", rows, people), True)
    people[3]["sampling_probability"] = "often"
    with pytest.raises(FieldError) as error:
        build_table(CHARTHAL, GradedModel("x", rows, people))
    assert error.value.field == "sampling_probability"


def test_items_without_a_score_are_left_out() -> None:
    rows, people = graded(2)
    rows[70] = CHARTHAL.graded_row(
        {k: v for k, v in rows[70].items() if k != "verdicts"}, [Verdict(status="judge_error")]
    )
    found = corrected_score(CHARTHAL, rows, people, True)
    assert (found["unscored"], found["raw"]["n"], found["corrected"]["n"]) == (1, 199, 60)


def test_what_people_cannot_have_said() -> None:
    rows, people = graded(3, 100)
    with pytest.raises(CustosError, match="field 'id': no item 'zzz'"):
        corrected_score(CHARTHAL, rows, [*people, {"id": "zzz", "score": 1}], True)
    hieval = get_benchmark("hieval")
    row = {"id": "1", "question": "?", "references": ["a"], "response": "b", "label": "Wrong"}
    with pytest.raises(CustosError, match="its items hold people's labels"):
        corrected_score(
            hieval, [hieval.graded_row(row, [Verdict(status="judge_error")])], [row], True
        )


def test_agreement_counts_what_both_labelled() -> None:
    rows, people = graded(4)
    found = judge_agreement(CHARTHAL, rows, people)
    assert found is not None
    judge = [str(row["score"]) for row in rows[:60]]
    human = [str(row["score"]) for row in people]
    assert found["confusion"]["labels"] == ["0", "1"]
    assert found["confusion"]["counts"] == confusion_matrix(human, judge).tolist()
    bins = found["calibration"]["after"]["bins"]
    assert sum(cell["n"] for cell in bins) == 60
    right = sum(cell["accuracy"] * cell["n"] for cell in bins)
    assert right == pytest.approx(sum(a == b for a, b in zip(judge, human, strict=True)))
    assert judge_agreement(CHARTHAL, rows, []) is None


def test_benchmarks_of_judges_bring_people_along() -> None:
    hieval = get_benchmark("hieval")
    rows = []
    for number, (label, said) in enumerate([("Wrong", "Wrong"), ("Correct", "Wrong")]):
        row = {"id": str(number), "question": "?", "references": ["a"], "response": "b"}
        verdict = Verdict(status="scored", label=said, judge="j")
        rows.append(hieval.graded_row({**row, "label": label}, [verdict]))
    found = judge_agreement(hieval, rows, [])
    assert found == {
        "confusion": {"labels": ["Correct", "Wrong"], "counts": [[0, 1], [0, 1]]},
        "calibration": None,
    }


@pytest.mark.parametrize("kept", [(), ("question", "response"), ("score",)])
def test_what_people_have_not_graded_yet_is_no_grade(kept: tuple[str, ...]) -> None:
    rows, people = graded(4)
    open_rows = [
        {"id": row["id"], **{name: None if name == "score" else row[name] for name in kept}}
        for row in rows[60:]
    ]
    assert human_scores(CHARTHAL, rows, [*people, *open_rows]) == {
        row["id"]: 100 * row["score"] for row in people
    }
    assert corrected_score(CHARTHAL, rows, [*people, *open_rows], True) == corrected_score(
        CHARTHAL, rows, people, True
    )
    assert not human_scores(CHARTHAL, rows, open_rows)


GRADED = {
    "charthal": item(response="x", score=1),
    "chartom": chart(fact_response="1.2", fact_correct=True),
    "simplevqa": question(1, "A"),
}


@pytest.mark.parametrize("name", GRADED)
def test_a_judges_grades_are_never_taken_for_peoples(name: str) -> None:
    benchmark, row = get_benchmark(name), GRADED[name]
    [own] = benchmark.scores([row])
    assert own.value == benchmark.full_score
    assert human_scores(benchmark, [row], [{benchmark.item_id: own.id}]) == {}
    assert human_scores(benchmark, [row], [row]) == {own.id: own.value}


def test_every_benchmark_says_which_grades_are_a_judges() -> None:
    for name in benchmark_names():
        assert bool(get_benchmark(name).grade_fields) == (name in GRADED)


def test_labels_need_ids_of_their_own() -> None:
    rows, people = graded(6)
    with pytest.raises(CustosError, match="item 201: id '0' occurs twice"):
        corrected_score(CHARTHAL, [*rows, rows[0]], people, True)


def test_rules_need_no_correction() -> None:
    row = {"question_id": "1", "response": "(A)", "ground_truth": "A"}
    with pytest.raises(CustosError, match="graded by rule"):
        human_scores(get_benchmark("truthfulvqa"), [row], [{"question_id": "1"}])


def test_a_wrong_answer_and_no_attempt_are_different_labels() -> None:
    """Both score 0, and only one of them is an attempt: CGA and F hang on the difference."""
    vqa = get_benchmark("simplevqa")
    rows = [
        vqa.graded_row(question(n, response="x"), [verdict_of(label)])
        for n, label in enumerate(("Correct", "Incorrect", "Incorrect"))
    ]
    conclusions = ("A", "B", "C")
    people = [{"data_id": n, "judge_res": {"people": c}} for n, c in enumerate(conclusions)]
    agreement = judge_agreement(vqa, rows, people)
    assert agreement is not None
    assert agreement["confusion"]["labels"] == ["Correct", "Incorrect", "Not attempted"]
    assert agreement["confusion"]["counts"] == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]


def verdict_of(label: str, confidence: float = 0.75) -> Verdict:
    return Verdict(status="scored", label=label, confidence=confidence, judge="j1")


def test_the_confidence_is_that_of_the_label_that_is_compared() -> None:
    """A judge that is right in .75 of its verdicts and says so has no calibration error."""
    vqa = get_benchmark("simplevqa")
    rows, people = [], []
    for n in range(400):
        said = ("Incorrect", "Not attempted")[n % 2]
        truth = said if n % 4 else "Correct"
        rows.append(vqa.graded_row(question(n, response="x"), [verdict_of(said)]))
        people.append({"data_id": n, "judge_res": {"people": truth}})
    agreement = judge_agreement(vqa, rows, people)
    assert agreement is not None
    assert agreement["calibration"]["after"]["ece"] < 0.02


def test_an_answer_that_a_rule_decides_has_no_confidence() -> None:
    """The one verdict on such a row is on the justification, which nobody compares here."""
    chartom = get_benchmark("chartom")
    row = chart(
        id="P1_2", manipulation="3D", hmi=0.9, fact_response="1.2", mind_response="0.9. It is 3D."
    )
    graded_row = chartom.graded_row(row, [verdict_of("Named", 0.6)])
    agreement = judge_agreement(chartom, [graded_row], [{"id": "P1_2", "fact_correct": True}])
    assert agreement is not None
    assert agreement["calibration"] is None
