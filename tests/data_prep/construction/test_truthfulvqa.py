"""TruthfulVQA's steps: categories, three levels, inspection."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.framework.base import get_benchmark
from data_prep.construction.forms.base import FORMS
from data_prep.construction.model_writer import load_rows
from data_prep.construction.sheets import read_sheet_rows
from data_prep.construction.steps.base import STEPS, Row
from data_prep.construction.steps.truthfulvqa import CATEGORY_OF, TAXONOMY, LevelQuestion
from data_prep.errors import UnusableText
from tests.data_prep.construction.made_up import reply
from tests.published_files import needs_published, published

PICTURE = {"id": "p1", "images": ["a.png"]}
PLACED = {
    **PICTURE,
    "category": "Eye Illusion",
    "subcategory": "Optical Illusions",
    "what_misleads": "The lines are equally long.",
}


def draft(question: str, answer: str = "B", **fields: Any) -> Row:
    return {"question": question, "options": ["1", "2", "3", "4"], "answer": answer, **fields}


def made(step_name: str, row: Row, **replied: Any) -> list[Row]:
    step = STEPS.get(step_name)
    return step.read(step.row_type.model_validate(row), reply(replied))


def test_questions_of_a_spreadsheet_have_levels_and_options(tmp_path: Path) -> None:
    table = tmp_path / "questions.csv"
    cells = {**PLACED, "images": "a.png", "level": "2", "question": "?", "options": "w;x;y;z"}
    with table.open("w") as file:
        writer = csv.DictWriter(file, [*cells, "ground_truth"])
        writer.writeheader()
        writer.writerow({**cells, "ground_truth": "B"})
    [question] = load_rows(table, LevelQuestion)
    assert (question.level, question.options) == (2, ("w", "x", "y", "z"))
    [row] = read_sheet_rows(table, FORMS.get("truthfulvqa-inspection"))
    assert (row["level"], row["options"]) == (2, ["w", "x", "y", "z"])


def test_eight_categories_and_21_subcategories() -> None:
    assert (len(TAXONOMY), len(CATEGORY_OF)) == (8, 21)


@needs_published("truthfulvqa.txt")
def test_the_taxonomy_is_the_papers() -> None:
    paper = published("truthfulvqa.txt").read_text(encoding="utf-8")
    appendix = paper.rsplit("C Dataset Categorization", 1)[1]
    named = re.findall(r"^(?:- )?(\d)-\d \*\*(.+?):\*\*", appendix, re.M)
    categories = dict(re.findall(r"^(\d) ([A-Z]\w+ \w+)$", appendix, re.M))
    assert {name: categories[number] for number, name in named} == dict(CATEGORY_OF)


def test_a_picture_is_placed() -> None:
    [row] = made(
        "truthfulvqa-place", PICTURE, what_misleads="Equal lines.", misleading=True,
        subcategory="Optical Illusions",
    )  # fmt: skip
    assert (row["category"], row["subcategory"]) == ("Eye Illusion", "Optical Illusions")


@pytest.mark.parametrize(
    ("replied", "reason"),
    [
        ({"misleading": False}, "not misleading"),
        ({"misleading": True}, "does not fit the schema"),
        ({"misleading": True, "subcategory": "Jokes"}, "does not fit the schema"),
    ],
)
def test_pictures_without_a_place(replied: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableText) as error:
        made("truthfulvqa-place", PICTURE, what_misleads="It is plain.", **replied)
    assert error.value.reason == reason


def test_three_levels_are_items_of_the_benchmark() -> None:
    rows = made(
        "truthfulvqa-levels", PLACED, level1=draft("How many lines?", "A"),
        level2=draft("Which is longer?"), level3=draft("All lines grow. Which grew?", "D"),
    )  # fmt: skip
    assert [(row["id"], row["level"], row["set_id"]) for row in rows] == [
        ("p1-1", 1, "p1"),
        ("p1-2", 2, "p1"),
        ("p1-3", 3, "p1"),
    ]
    benchmark = get_benchmark("truthfulvqa")
    assert "(D) 4" in benchmark.prompts(rows[0], "standard")["response"]
    graded = [benchmark.graded_row({**row, "response": "(D)"}, ()) for row in rows]
    assert [row["is_correct"] for row in graded] == [False, False, True]
    assert benchmark.table(graded)["category"] == {"Eye Illusion": pytest.approx(1 / 3)}


@pytest.mark.parametrize(
    "changed",
    [
        {"level1": draft("q", options=["1", "1", "3", "4"])},
        {"level1": draft("q", options=["1", "2", "3"])},
        {"level1": draft("q", "E")},
        {"level1": draft("b?")},
    ],
)
def test_levels_that_do_not_fit(changed: dict[str, Any]) -> None:
    levels = {"level1": draft("a?"), "level2": draft("b?"), "level3": draft("c?")}
    with pytest.raises(UnusableText) as error:
        made("truthfulvqa-levels", PLACED, **(levels | changed))
    assert error.value.mendable


@pytest.mark.parametrize(
    ("seen", "faults", "detail"),
    [
        ("C", [], "the model sees C, not B"),
        ("B", ["not of this level"], "not of this level: hm"),
        (None, [], "the model sees None"),
    ],
)
def test_inspection(seen: str | None, faults: list[str], detail: str) -> None:
    [row] = made(
        "truthfulvqa-levels", PLACED, level1=draft("a?"), level2=draft("b?"), level3=draft("c?")
    )[:1]  # fmt: skip
    step = STEPS.get("truthfulvqa-inspect")
    shown = step.item(step.row_type.model_validate(row)).messages[1].text
    assert "(B) 2" in shown and "ground" not in shown.casefold()
    assert made("truthfulvqa-inspect", row, analysis="", answer_seen="B", faults=[]) == [row]
    with pytest.raises(UnusableText, match=detail):
        made("truthfulvqa-inspect", row, analysis="hm", answer_seen=seen, faults=faults)
