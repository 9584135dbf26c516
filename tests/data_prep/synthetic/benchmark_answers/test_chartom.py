"""CHARTOM rows against the rules of the benchmark, which were written for other answers."""

from __future__ import annotations

import pytest

from data_prep.made.chart_answers import in_other_unit, in_words
from judging.tasks import get_task
from judging.types import LabelledExample


@pytest.mark.parametrize("variant", ["number", "choice", "ranking"])
def test_labels_are_those_of_the_rules_where_they_decide(
    benchmark_rows: list[LabelledExample], variant: str
) -> None:
    rows = [r for r in benchmark_rows if r.task == "chartom-fact" and r.variant == variant]
    decided = [
        (row, ruling.label == "Correct")
        for row in rows
        if (ruling := get_task("chartom-fact").rule_if_certain(row)) is not None
    ]
    assert len(decided) > 0.2 * len(rows)
    assert {rule for _, rule in decided} == {True, False}
    wrong = [
        (row.question, row.references, row.response, row.label)
        for row, rule in decided
        if ("Correct" if rule else "Incorrect") != row.label
    ]
    assert not wrong


def test_there_are_twenty_forms_of_numeric_answers(benchmark_rows: list[LabelledExample]) -> None:
    kinds = [
        str(row.metadata["kind"])
        for row in benchmark_rows
        if row.task == "chartom-fact" and row.variant == "number"
    ]
    forms = {part for kind in kinds for part in kind.split(", ")}
    assert len(forms) >= 20
    for form in forms:
        assert sum(form in kind.split(", ") for kind in kinds) >= 4, form


@pytest.mark.parametrize(
    ("number", "words"),
    [(7, "seven"), (13, "thirteen"), (40, "forty"), (98, "ninety-eight"), (200, "two hundred"),
     (305, "three hundred and five"), (999, "nine hundred and ninety-nine")],
)  # fmt: skip
def test_numbers_in_words(number: int, words: str) -> None:
    assert in_words(number) == words


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [(12, "tonnes", "12,000 kg"), (5, "minutes", "300 seconds"), (34, "mm", "3.4 cm"),
     (9, "nats", None)],
)  # fmt: skip
def test_other_units(number: int, unit: str, text: str | None) -> None:
    assert in_other_unit(number, unit) == text
