"""Families of chart pairs: answers follow from the data, and the pair on disk from both."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.framework.base import get_benchmark
from data_prep.made.misleading_charts import FAMILIES, Family, MisleadingChart, generate_chart_pairs
from data_prep.made.misleading_drawing import write_chart_pairs

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


PUBLISHED = {
    name: (float(str(row[1])), float(str(row[3])))
    for name, row in CHARTOM.published[0].rows.items()
}
ELEVEN = {
    *("inconsistent x-axis", "inverted y-axis", "dual axes", "truncated y-axis"),
    *("compressed y-axis", "3D effect", "pictorial bars", "swapped axis"),
    *("logarithmic y-axis", "inverted color scale", "3D effect + pop out"),
}


def write(out: Path, num_pairs: int, seed: int = 0) -> list[dict[str, Any]]:
    pairs = generate_chart_pairs(num_pairs, seed)
    write_chart_pairs(out, pairs, PUBLISHED, source={"seed": seed}, command="custos prep chartom")
    return [json.loads(line) for line in (out / "items.jsonl").open()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All families once, without their pictures, which take long to draw."""
    out = tmp_path_factory.mktemp("chartom")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("data_prep.made.misleading_drawing.render", lambda *_: b"")
        write(out, len(FAMILIES), seed=5)
    return out


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    return CHARTOM.load(str(folder))


def test_all_kinds_manipulations_and_questions_occur(rows: list[dict[str, Any]]) -> None:
    assert {row["manipulation"] for row in rows} == ELEVEN | {""}
    assert {row["kind"] for row in rows} == {"line", "bar", "pie", "scatter", "map"}
    assert {row["question_type"] for row in rows} == {"choice", "ranking", "number"}
    for family in FAMILIES:
        kind, _, manipulation, _ = CHARTOM.published[0].rows[family.like]
        assert kind == family.kind
        assert manipulation == family.manipulation


def test_both_charts_of_a_pair_share_data_question_and_answer(rows: list[dict[str, Any]]) -> None:
    not_shared = {"id", "manipulation", "image", "images", "strategies", "alternatives", "hmi"}
    for original, manipulated in zip(rows[::2], rows[1::2], strict=True):
        assert manipulated["id"] == original["id"].replace("_1", "_2")
        shared = [
            {key: value for key, value in row.items() if key not in not_shared | {"hmi_source"}}
            for row in (original, manipulated)
        ]
        assert shared[0] == shared[1]
