"""Families of chart pairs: answers follow from the data, those of misled readers do not."""

from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.chartom.item import acceptable_interval
from benchmarks.framework.base import get_benchmark
from data_prep.made.misleading_charts import FAMILIES, Family, MisleadingChart

CHARTOM = get_benchmark("chartom")


def charts(family: Family) -> list[MisleadingChart]:
    return [family.make(Random(seed)) for seed in range(20)]


def truth(family: Family, chart: MisleadingChart) -> Any:
    """The answer, from the data alone and by other means than the families use."""
    columns = list(chart.values.values())
    if chart.question_type == "number":
        amount = next(
            int(word) for word in chart.question.split() if len(word) == 1 != word.isalpha()
        )
        return columns[0][-1] / columns[0][0] * amount
    if chart.question_type == "ranking":
        return tuple(
            name for _, name in sorted(zip(columns[0], chart.labels, strict=True), reverse=True)
        )
    by_name = dict(zip(chart.labels, columns[0], strict=True))
    if family.manipulation in ("inverted y-axis", "inconsistent x-axis"):
        return chart.choices[0 if np.polyfit(range(6), columns[0], 1)[0] > 0 else 1]
    if family.manipulation == "dual axes":
        year = next(label for label in chart.labels if f"in {label}?" in chart.question)
        return max(chart.values, key=lambda name: chart.values[name][chart.labels.index(year)])
    if family.manipulation == "3D effect":
        best = [label for label, value in by_name.items() if value == max(by_name.values())]
        return best[0] if len(best) == 1 else f"{best[0]} and {best[1]} were the same."
    if family.manipulation == "swapped axis":
        return chart.choices[0 if np.polyfit(columns[0], columns[1], 1)[0] > 0 else 1]
    if family.manipulation == "logarithmic y-axis":
        rises = np.diff(columns[0])
        return chart.choices[0 if rises[:3].sum() > rises[3:].sum() else 1]
    return max(chart.choices, key=by_name.__getitem__)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.kind} {f.manipulation}")
def test_the_answer_follows_from_the_data_and_the_misled_one_does_not(family: Family) -> None:
    for chart in charts(family):
        assert chart.answer == pytest.approx(truth(family, chart))
        assert chart.misled != chart.answer
        if chart.question_type == "choice":
            assert {chart.answer, chart.misled} <= set(chart.choices)
        if chart.question_type == "ranking":
            assert isinstance(chart.misled, tuple) and isinstance(chart.answer, tuple)
            assert sorted(chart.misled) == sorted(chart.answer)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.kind} {f.manipulation}")
def test_rules_accept_the_answer_and_no_other_strategy(family: Family) -> None:
    for chart in charts(family):
        row = {
            "id": "P_2", "kind": family.kind, "question": chart.question, "unit": chart.unit,
            "question_type": chart.question_type, "choices": chart.choices, "answer": chart.answer,
        }  # fmt: skip
        for answer, is_right in (
            (chart.answer, True),
            (chart.misled, False),
            (chart.skimming, False),
        ):
            if answer is None:
                continue
            text = " > ".join(answer) if isinstance(answer, tuple) else str(answer)
            answered = {**row, "fact_response": f"The answer is {text}"}
            if answer == chart.skimming and CHARTOM.requests(answered):
                continue  # A plainly wrong answer may be left to a judge.
            graded = CHARTOM.graded_row(answered, [])
            assert graded["fact_correct"] is is_right, (chart, text)


def test_no_strategy_but_the_right_one_is_acceptable_from_people() -> None:
    for family in FAMILIES:
        for chart in charts(family):
            if isinstance(chart.answer, float):
                assert isinstance(chart.misled, float) and chart.skimming is not None
                others = [chart.misled, chart.skimming]
                low, high = acceptable_interval(chart.answer, others)
                assert low < chart.answer < high
                assert not any(low < other < high for other in others)
