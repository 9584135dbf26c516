"""A judge beside its rivals on each task, counted by hand."""

from __future__ import annotations

import pytest

from evaluation.baselines import RULES_NAME, VARIANT_MAJORITY, measure_by_task
from judging.types import LabelledExample, Verdict


def example(number: int, task: str, variant: str, label: str) -> LabelledExample:
    return LabelledExample(
        id=str(number),
        task=task,
        variant=variant,
        question=f"Question {number}",
        references=("a",),
        responses=("b",),
        label=label,
    )


def verdicts(*labels: str | None) -> list[Verdict]:
    return [
        Verdict(
            id=str(number), status="scored" if label else "abstain", label=label, judge="somebody"
        )
        for number, label in enumerate(labels)
    ]


EXAMPLES = [
    *(example(n, "charthal", "normal-open", "1") for n in range(3)),
    example(3, "charthal", "normal-open", "0"),
    *(example(n, "charthal", "irrelevant", "0") for n in range(4, 6)),
    example(6, "chartom-fact", "number", "Correct"),
    example(7, "chartom-fact", "number", "Incorrect"),
]


def test_counts_by_hand() -> None:
    judge = verdicts("1", "1", "0", "0", "0", "1", "Correct", "Incorrect")
    rules = verdicts(*(None,) * 6, None, "Incorrect")
    measured = measure_by_task(EXAMPLES, judge, {RULES_NAME: rules, "other": judge})
    assert list(measured) == ["charthal", "chartom-fact"]
    charthal, fact = measured["charthal"], measured["chartom-fact"]
    assert charthal["n"] == 6
    assert charthal["accuracy"]["value"] == pytest.approx(4 / 6)
    # Among six rows, 1 in the open rubric and 0 in the other are right five times.
    assert charthal["rivals"][VARIANT_MAJORITY]["accuracy"]["value"] == pytest.approx(5 / 6)
    assert charthal["rivals"][VARIANT_MAJORITY]["gain"]["value"] == pytest.approx(-1 / 6)
    assert RULES_NAME not in charthal["rivals"]  # They decide nothing there.
    assert fact["accuracy"]["value"] == 1
    by_rules = fact["rivals"][RULES_NAME]
    assert by_rules["accuracy"]["value"] == by_rules["decided"] == 0.5
    assert by_rules["gain"]["value"] == 0.5
    assert set(fact["rivals"]) == {RULES_NAME, VARIANT_MAJORITY}


def test_rows_without_a_label_are_wrong_in_the_comparison() -> None:
    judge = verdicts(*("1",) * 6, None, "Incorrect")
    rules = verdicts(*(None,) * 6, "Correct", "Incorrect")
    fact = measure_by_task(EXAMPLES, judge, {RULES_NAME: rules})["chartom-fact"]
    assert fact["rivals"][RULES_NAME]["gain"]["value"] == -0.5
