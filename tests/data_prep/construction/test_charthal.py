"""ChartHal's construction: charts, recipes, and questions that people correct."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data_prep.construction.charthal import (
    QUESTIONS,
    load_charxiv,
    rows_to_check,
    sample_charts,
    write_benchmark,
)
from data_prep.construction.forms.base import FORMS
from data_prep.construction.sheets import collect
from data_prep.construction.steps.base import Row
from data_prep.construction.steps.charthal import CELLS, recipe
from judging.errors import CustosError
from tests.data_prep.construction.made_up import chart, fill, question

POOL = [
    chart(
        number, 1 + number % 3, "cs" if number % 4 else "physics", "bar" if number % 7 else "line"
    )
    for number in range(300)
]


def test_subplots_three_to_two_and_disciplines_in_proportion() -> None:
    chosen = sample_charts(POOL, 50, seed=1)
    assert Counter(c.num_subplots for c in chosen) == {1: 30, 2: 20}
    for subplots, count in ((1, 30), (2, 20)):
        pool = [c for c in POOL if c.num_subplots == subplots]
        share = sum(c.discipline == "physics" for c in pool) / len(pool)
        num_physics = sum(c.discipline == "physics" for c in chosen if c.num_subplots == subplots)
        assert abs(num_physics - count * share) < 1
    assert chosen == sample_charts(POOL, 50, seed=1)
    assert chosen != sample_charts(POOL, 50, seed=2)
    assert len({c.id for c in chosen}) == 50


def test_every_chart_type_stays_in() -> None:
    rare = chart(999, 2, "physics", "radar")
    for seed in range(10):
        chosen = sample_charts([*POOL, rare], 10, seed)
        assert rare in chosen
        assert Counter(c.num_subplots for c in chosen) == {1: 6, 2: 4}
        assert sum(c.discipline == "physics" for c in chosen) in (2, 3)


def clone(folder: Path, **changed: dict[str, Any]) -> Path:
    """Write six charts as CharXiv's files have them; a keyword replaces a file."""
    (folder / "data").mkdir()
    (folder / "images").mkdir()
    numbers = (0, 2, 3, 5, 7, 8)
    files: dict[str, Any] = {
        "image_metadata": {
            str(n): {"category": "cs" if n < 5 else "physics", "caption": "Accuracy."}
            for n in numbers
        },
        "descriptive": {
            str(n): {"figure_id": n, "num_subplots": 2 if n in (0, 8) else 12 if n == 7 else 1}
            for n in numbers
        },
        "chart_types": {
            str(n): {"figure_id": n, "chart_types": ["Scatter Plot", "Line Chart"][n % 2 :]}
            for n in numbers
        },
    }
    for name, records in {**files, **changed}.items():
        (folder / "data" / f"{name}_val.json").write_text(json.dumps(records), encoding="utf-8")
    for n in numbers:
        Image.new("RGB", (4, 4), (20 * n, 0, 0)).save(folder / "images" / f"{n}.jpg")
    return folder


def test_charts_have_what_the_sampling_needs(tmp_path: Path) -> None:
    charts = load_charxiv(clone(tmp_path))
    assert [chart.id for chart in charts] == ["0", "2", "3", "5", "7", "8"]
    first, *_, last = charts
    assert first.model_dump() == {
        "id": "0",
        "images": (str((tmp_path / "images" / "0.jpg").resolve()),),
        "num_subplots": 2,
        "discipline": "cs",
        "chart_type": "Scatter Plot",
    }
    assert (last.discipline, charts[2].chart_type) == ("physics", "Line Chart")
    sampled = sample_charts(charts, 5, seed=0)
    assert [chart.id for chart in sampled] == ["0", "2", "3", "5", "8"], "none of 12 subplots"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=r"image_metadata_val\.json: .*a clone of CharXiv"):
        load_charxiv(tmp_path)
    folder = clone(tmp_path, chart_types={})
    with pytest.raises(CustosError, match="chart 0: field 'chart_type'"):
        load_charxiv(folder)
    (folder / "images" / "0.jpg").unlink()
    with pytest.raises(CustosError, match=r"unpack CharXiv's images\.zip"):
        load_charxiv(folder)


def test_recipes_hold_every_criterion_of_their_cell() -> None:
    assert len(CELLS) == len({recipe(cell) for cell in CELLS}) == 12
    needed = {
        "desc": ["facts", "concrete answer"],
        "reason": ["difference", "comparison", "trend", "concrete answer"],
        "open": ["explanation", "cause", "interpretation", "prediction", "no particular fact"],
        "irrel": ["topic that does not occur in the chart at all", "cannot be answered"],
        "inexist": ["year", "category", "label", "variable", "missing", "cannot be answered"],
        "contra": ["false", "never in the question", "what the chart shows instead"],
        "normal": ["only of what the chart really shows", "consistent"],
    }
    for cell in CELLS:
        text = recipe(cell)
        assert all(word in text for word in needed[cell.q_type] + needed[cell.q_relation]), cell
        assert ("leaving the statement aside" in " ".join(text.split())) == (
            cell.q_relation == "contra" and cell.q_type != "open"
        )
        assert ("tentative" in text) == (cell == ("open", "normal"))
        assert ("purely hypothetical" in text) == (cell == ("open", "inexist"))
        assert ("if the question can be answered" in text) == (cell == ("reason", "contra"))
        assert ("specific and expects" in text) == (cell == ("desc", "irrel"))


FORM = FORMS.get("charthal")


def sent_out(folder: Path, count: int) -> list[Row]:
    lines = (question(n).model_dump_json() for n in range(count))
    (folder / QUESTIONS).write_text("".join(f"{line}\n" for line in lines))
    return rows_to_check(folder)


def test_people_agree_correct_discard_and_differ(tmp_path: Path) -> None:
    rows = sent_out(tmp_path, 7)
    assert rows[0]["images"] == [str((tmp_path / "images" / "7.png").resolve())]
    keep = {"status": "Keep "}
    corrected = {**keep, "question": "How many boats?", "q_relation": "contra"}
    anna = fill(
        tmp_path / "anna.csv",
        FORM,
        rows,
        {
            "7_0": keep,
            "7_1": {"status": "discard"},
            "7_2": corrected,
            "7_3": keep,
            "7_4": {**keep, "acceptable_ranges": "[4,6]; [40%, 60%]"},
            "7_6": keep,
        },
    )
    ben = fill(
        tmp_path / "ben.csv",
        FORM,
        rows,
        {
            "7_0": {**keep, "note": "fine"},
            "7_1": {"status": "discard", "note": "about nothing"},
            "7_2": corrected,
            "7_3": {"status": "discard"},
            "7_4": keep,
        },
    )
    collected = collect(FORM, rows, [anna, ben])
    kept = write_benchmark(tmp_path, collected)
    assert [row.id for row in kept] == ["7_0", "7_2", "7_6"]
    assert kept[0] == question(0)
    assert (kept[1].question, kept[1].q_relation) == ("How many boats?", "contra")
    assert [row.id for row in collected.discarded] == ["7_1"]
    assert collected.unfinished == ["7_5"]
    ranges = "[4, 6]; [40%, 60%]"
    assert json.loads((tmp_path / "disagreements.json").read_text()) == [
        {"id": "7_3", "status": {"anna": "keep", "ben": "discard"}},
        {"id": "7_4", "acceptable_ranges": {"anna": ranges, "ben": ""}},
    ]
    cells = {"7_3": {"status": "discard"}, "7_4": {**keep, "acceptable_ranges": ranges}}
    final = fill(tmp_path / "final.csv", FORM, rows, cells)
    settled = collect(FORM, rows, [anna, ben], final)
    kept = write_benchmark(tmp_path, settled)
    assert kept[2].ref_answer == f"About 5. (Answers in the range {ranges} are ACCEPTABLE)"
    assert settled.disagreements == []
    official = json.loads((tmp_path / "charthal.json").read_text())
    assert list(official) == ["7_0", "7_2", "7_4", "7_6"]
    assert official["7_0"] == question(0).model_dump(exclude={"id"})


@pytest.mark.parametrize(
    "cells",
    [
        {"status": "maybe"},
        {"status": "keep", "q_type": "deep"},
        {"status": "keep", "question": " "},
        {"acceptable_ranges": "[1, 2]", "status": ""},
        *({"status": "keep", "acceptable_ranges": text} for text in ("5", "4 to 5", "[5, 4]")),
        *({"status": "keep", "acceptable_ranges": text} for text in ("[a, b]", "[nan, 1]")),
        {"status": "keep", "acceptable_ranges": "[0, inf]"},
    ],
)
def test_sheets_filled_in_wrongly(tmp_path: Path, cells: dict[str, str]) -> None:
    rows = sent_out(tmp_path, 1)
    with pytest.raises(CustosError, match=f"row 1 below the header: .*'?{list(cells)[-1]}'?") as it:
        fill(tmp_path / "anna.csv", FORM, rows, {"7_0": cells})
    assert "anna.csv" in str(it.value)


def test_gold_ranges_may_be_spelt_in_another_way(tmp_path: Path) -> None:
    gold = [{**sent_out(tmp_path, 1)[0], "gold": {"acceptable_ranges": "[4,6]"}}]
    cells = {"status": "keep", "acceptable_ranges": "[ 4, 6 ]"}
    anna = fill(tmp_path / "anna.csv", FORM, gold, {"7_0": cells})
    assert collect(FORM, [], [anna], gold=gold).gold == {"anna": (1, 1)}
