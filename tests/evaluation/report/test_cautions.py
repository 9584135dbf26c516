"""What a reader is told before the figures and on the screen, and whether the figures say so."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.attacks.report import attack_caution
from evaluation.attacks.rows import Share, measure_share
from evaluation.report.disagreements import find_disagreements
from evaluation.report.markdown import with_interval
from evaluation.report.report import build_report
from evaluation.report.summary import WIDTH, summary_lines
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import (
    evaluation,
    example,
    report,
    scored,
    typed_records,
    untrained_mode_note,
)
from tests.evaluation.people.made_up import several
from tests.evaluation.people.test_annotators import with_second


def test_rows_without_a_label_are_in_the_figures_that_say_so() -> None:
    made = report()
    [text] = [text for text in made["cautions"] if "got no label" in text]
    assert text.startswith("20 of 180 rows got no label: they count in the coverage and in the")
    counted = {name for name, metric in made["metrics"].items() if metric["n"] == 180}
    assert counted == {"coverage", "accuracy_unscored_as_wrong"}


def test_verdicts_in_a_mode_that_was_not_trained_are_cautioned() -> None:
    """Read it from the message: of the judge of a service nothing else is known."""
    note = untrained_mode_note()
    examples = [example("Correct", id=str(number)) for number in range(30)]
    verdicts = [
        scored("Correct", id=str(number), message=note if number < 20 else None)
        for number in range(30)
    ]
    made = build_report(examples, verdicts, seconds=1, command="")
    assert made["untrained_mode"] == 20
    [text] = [text for text in made["cautions"] if "not trained for" in text]
    assert text.startswith("20 of 30 rows ask for a `mode`")


def test_rows_that_were_drawn_unequally_are_weighed_in_a_caution() -> None:
    """Twenty rows stand for 200 that the judge is sure of, and twenty for themselves."""
    examples = [
        example(
            "Correct",
            id=str(number),
            question=f"Question {number}?",
            sampling_probability=1.0 if number < 20 else 0.1,
        )
        for number in range(40)
    ]
    right = [number % 2 == 0 if number < 20 else number % 10 > 0 for number in range(40)]
    verdicts = [
        scored("Correct" if is_right else "Wrong", id=str(number))
        for number, is_right in enumerate(right)
    ]
    made = build_report(examples, verdicts, seconds=1, command="")
    assert made["metrics"]["accuracy"]["value"] == pytest.approx(28 / 40)
    drawn = made["unequally_drawn"]
    assert (drawn["lowest"], drawn["highest"]) == (0.1, 1)
    assert drawn["accuracy"]["value"] == pytest.approx((10 + 180) / 220)
    assert any(with_interval(drawn["accuracy"]) in text for text in made["cautions"])
    alike = [row.model_copy(update={"sampling_probability": 0.1}) for row in examples]
    assert build_report(alike, verdicts, seconds=1, command="")["unequally_drawn"] is None


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
    assert rival["p"] == 0.5  # two questions, both for the judge
    [caution] = [t for t in made["cautions"] if "not shown to beat a logistic regression" in t]
    assert rival["gain"]["value"] == pytest.approx(0.1) and rival["gain"]["low"] <= 0
    assert caution.endswith(f"less the regression's is {with_interval(rival['gain'])}.")


def shares(num_questions: int, num_searched: int) -> dict[str, Share]:
    hits = np.arange(num_questions) % 50 == 0
    searched = np.arange(num_searched) % 2 == 0
    return {
        "denial": measure_share(hits.tolist(), range(num_questions)),
        "search": measure_share(searched.tolist(), range(num_searched)),
    }


def test_a_search_on_few_answers_does_not_make_many_questions_too_few() -> None:
    caution = attack_caution(500, shares(500, 3))
    assert caution is not None
    assert caution.startswith("3 questions are too few to conclude: the share of 'search' may lie")
    assert attack_caution(500, shares(500, 400)) is None
    assert str(attack_caution(500, shares(500, 1))).startswith("1 question is too few to conclude")


@pytest.mark.parametrize("make", [evaluation, typed_records, with_second, several])
@pytest.mark.parametrize("name", ["qs", "a-judge-with-a-very-long-name" * 5, "[red]x\n\x1b[31m"])
def test_every_line_fits_80_columns(make: object, name: str) -> None:
    assert callable(make)
    examples, verdicts = make()
    seen = {"file": "trained on", "rows": 3}
    report = build_report(examples, verdicts, seconds=1, command="", seen=seen)
    lines = summary_lines(name, report, find_disagreements(examples, verdicts))
    assert max(map(len, lines)) <= WIDTH
    assert all(line.isprintable() for line in lines)
    assert any("trained on this very file" in line for line in lines)


@pytest.mark.parametrize(("questions", "is_wide"), [(8, True), (200, False)])
def test_too_few_rows_are_said_to_be_too_few(questions: int, is_wide: bool) -> None:
    report = build_report(*evaluation(questions=questions), seconds=1, command="")
    assert any("too few to conclude" in text for text in report["cautions"]) == is_wide
    accuracy = report["metrics"]["accuracy"]
    assert (accuracy["high"] - accuracy["low"] > 0.2) == is_wide


def test_no_id_or_message_commands_the_terminal() -> None:
    examples, verdicts = evaluation(questions=8)
    id = "7\x1b[2J"
    examples[0] = examples[0].model_copy(update={"id": id})
    verdicts[0] = Verdict(id=id, status="unparsed", message="the text '\x1b]0;x\x07' has no label")
    report = build_report(examples, verdicts, seconds=1, command="")
    lines = summary_lines("qs", report, find_disagreements(examples, verdicts))
    assert any("has no label (id 7 [2J)" in line for line in lines)
    assert all(line.isprintable() for line in lines)
