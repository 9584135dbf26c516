"""What a reader is told before the figures, and whether the figures say so."""

from __future__ import annotations

import numpy as np

from evaluation.attacks.rates import Rate, measure_rate
from evaluation.cautions import attack_caution
from evaluation.report.report import build_report
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import example, scored
from tests.evaluation.report.made_up import report


def test_rows_without_a_label_are_in_the_figures_that_say_so() -> None:
    made = report()
    [text] = [text for text in made["cautions"] if "got no label" in text]
    assert text.startswith("20 of 180 rows got no label: they count in the coverage and in the")
    counted = {name for name, metric in made["metrics"].items() if metric["n"] == 180}
    assert counted == {"coverage", "accuracy_unscored_as_wrong"}


def answers_with_few_wrong(
    questions: int, wrong: int, answers: int
) -> tuple[list[LabelledExample], list[Verdict]]:
    """Right verdicts on equal responses, of which people call those to a few questions wrong.

    The regression has nothing to tell them by, and calls all of them Correct.
    """
    examples, verdicts = [], []
    for number in range(questions * answers):
        question = number // answers
        label = "Wrong" if question < wrong else "Correct"
        examples.append(example(label, id=str(number), question=f"Question {question}?"))
        verdicts.append(scored(label, id=str(number)))
    return examples, verdicts


def test_answers_to_one_question_are_no_proof_of_each_other() -> None:
    """Resample questions: the judge is ahead on two of twenty, with ten answers to each."""
    examples, verdicts = answers_with_few_wrong(questions=20, wrong=2, answers=10)
    made = build_report(examples, verdicts, seconds=1, command="")
    rival = made["baselines"]["logistic_overlap"]
    assert (rival["judge_only_right"], rival["baseline_only_right"]) == (20, 0)
    assert rival["mcnemar_p"] < 0.001
    assert any("not shown to beat a logistic regression" in text for text in made["cautions"])
    assert (rival["gain"]["value"], rival["gain"]["low"]) == (0.1, 0)


def shares(num_questions: int, num_searched: int) -> dict[str, Rate]:
    hits = np.arange(num_questions) % 50 == 0
    searched = np.arange(num_searched) % 2 == 0
    return {
        "denial": measure_rate(hits.tolist(), range(num_questions)),
        "search": measure_rate(searched.tolist(), range(num_searched)),
    }


def test_a_search_on_few_answers_does_not_make_many_questions_too_few() -> None:
    caution = attack_caution(500, shares(500, 3))
    assert caution is not None
    assert caution.startswith("3 questions are too few to conclude: the share of 'search' may lie")
    assert attack_caution(500, shares(500, 400)) is None
    assert str(attack_caution(500, shares(500, 1))).startswith("1 question is too few to conclude")
