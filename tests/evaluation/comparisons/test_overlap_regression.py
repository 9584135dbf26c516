"""The regression on word overlap: honest folds, and what it can and cannot learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaluation.regressions import overlap_features, overlap_verdicts
from evaluation.report.report import build_report
from judging.types import LabelledExample
from tests.evaluation.made_up import evaluation, example, scored


def answers(num_questions: int, is_learnable: bool, seed: int = 0) -> list[LabelledExample]:
    """Two answers a question: one repeats the reference, one does not; or labels are a coin's."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(2 * num_questions):
        correct = number % 2 == 0 if is_learnable else bool(rng.random() < 0.5)
        rows.append(
            example(
                "Correct" if correct else "Wrong",
                id=str(number),
                question=f"Question {number // 2}?",
                references=("a blue whale",),
                responses=("It is the blue whale." if number % 2 == 0 else "Surely a cow.",),
                reference_mode="any",
            )
        )
    return rows


def accuracy(rows: list[LabelledExample]) -> float:
    verdicts = overlap_verdicts(rows)
    assert verdicts is not None
    assert [verdict.id for verdict in verdicts] == [row.id for row in rows]
    assert all(abs(sum(verdict.probabilities.values()) - 1) < 1e-9 for verdict in verdicts)
    return float(np.mean([v.label == r.label for v, r in zip(verdicts, rows, strict=True)]))


def test_it_learns_overlap_and_nothing_from_chance() -> None:
    assert accuracy(answers(30, is_learnable=True)) == 1
    assert 0.35 < accuracy(answers(150, is_learnable=False)) < 0.65


def test_a_question_does_not_help_itself() -> None:
    """With one question per label, the other question says the wrong label about this one."""
    rows = [
        example("Correct", id="1", question="One?", responses=("42",)),
        example("Wrong", id="2", question="Two?", responses=("41",)),
    ]
    verdicts = overlap_verdicts(rows)
    assert verdicts is not None
    assert [verdict.label for verdict in verdicts] == ["Wrong", "Correct"]
    assert overlap_verdicts(rows[:1]) is None


def test_features_see_numbers_and_denials() -> None:
    right, denied, other = (
        overlap_features(example(responses=(text,))) for text in ("It is 42", "not 42", "It is 43")
    )
    assert right[8:12] == [1, 0, 0, 0]
    assert denied[8:12] == [1, 0, 1, 0]
    assert other[8:12] == [0, 1, 0, 0]


def test_a_judge_that_does_not_beat_it_says_so() -> None:
    rows = answers(60, is_learnable=True)
    wrong_on_some = [
        scored("Wrong" if number % 5 == 0 else row.label, 0.8, "Other", row.id)
        for number, row in enumerate(rows)
    ]
    options: dict[str, Any] = {"seconds": 1.0, "command": "x"}
    report = build_report(rows, wrong_on_some, **options)
    assert report["baselines"]["logistic_overlap"]["accuracy"]["value"] == 1
    assert any("not shown to beat a logistic regression" in text for text in report["cautions"])
    examples, verdicts = evaluation(questions=80, accuracy=0.97)
    coin = [e.model_copy(update={"responses": ("same",)}) for e in examples]
    better = build_report(coin, verdicts, **options)
    assert not any("logistic regression" in text for text in better["cautions"])
