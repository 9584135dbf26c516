"""Sheets as CSV, and the rows that are on them."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from data_prep.construction.forms.base import FORMS
from data_prep.construction.sheets import (
    item_name,
    mix_in_gold,
    read_gold_rows,
    read_table,
    write_table,
)
from judging.errors import CustosError
from tests.cli.prep.made_up import run, write_rows
from tests.data_prep.construction.sheets.made_up import fill, response_rows

FORM = FORMS.get("hieval-ea")


def test_a_sheet_shows_all_but_who_answered(tmp_path: Path) -> None:
    rows = response_rows(2)
    rows[0]["response"] = '=HYPERLINK("http://x")'
    write_table(tmp_path / "a.csv", FORM, rows)
    text = (tmp_path / "a.csv").read_text(encoding="utf-8-sig")
    first, _ = csv.DictReader(io.StringIO(text, newline=""))
    assert "secret-model" not in text
    assert first["Response"] == '~\'=HYPERLINK("http://x")'
    assert (first["Ground truth"], first["score"]) == ("two\nthree", "")
    assert read_table(tmp_path / "a.csv", FORM).filled == {}


def test_gold_items_are_a_share_of_the_whole_in_random_order() -> None:
    rows, gold = response_rows(90), [{"id": f"g{n}"} for n in range(40)]
    on_sheet = mix_in_gold(rows, gold, 0.1, seed=3)
    assert sum(row["id"].startswith("g") for row in on_sheet) == 10
    assert on_sheet != mix_in_gold(rows, gold, 0.1, seed=4)
    orders = [[row["id"] for row in mix_in_gold(rows, [], 0.1, seed)] for seed in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    assert [row["id"] for row in rows] not in orders
    firsts = [row["id"].startswith("g") for row in on_sheet]
    assert True in firsts[:-10]  # gold items stand among the rows, not behind them
    assert on_sheet == mix_in_gold(rows, gold, 0.1, seed=3)
    assert {row["id"] for row in on_sheet} >= {row["id"] for row in rows}
    assert len(mix_in_gold(rows, gold[:3], 0.5, seed=0)) == 93


def test_gold_values_must_fit_the_form(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps({"id": "1", "gold": {"score": "Fine"}}))
    with pytest.raises(CustosError, match="'Fine' is not one of Correct, Partial, Wrong"):
        read_gold_rows(path, FORM)
    path.write_text(json.dumps({"id": "1", "gold": {"grade": "Wrong"}}))
    with pytest.raises(CustosError, match="form 'hieval-ea' has no 'grade'"):
        read_gold_rows(path, FORM)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"score": "Bad"}, "row 1 below the header: field 'score': 'Bad' is not one of"),
        ({"score": "Wrong"}, "'error_type' is not filled in"),
        ({"error_type": "Other"}, "'score' is not filled in"),
        ({"score": "Correct", "error_type": "Other"}, "'error_type' is not asked for here"),
    ],
)
def test_rows_filled_in_wrongly(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    rows = response_rows(1)
    with pytest.raises(CustosError, match=message):
        fill(tmp_path / "anna.csv", FORM, rows, {rows[0]["id"]: cells})


def test_a_rationale_has_sixty_words(tmp_path: Path) -> None:
    form = FORMS.get("truthful-pair")
    rows = [{"id": "1", "question": "q", "response_a": "a", "response_b": "b"}]
    cells = {"better": "A", "score_a": "9", "score_b": "2", "rationale": "word " * 59}
    with pytest.raises(CustosError, match="has 59 words, expected at least 60"):
        fill(tmp_path / "anna.csv", form, rows, {"1": cells})
    cells["rationale"] += "word"
    filled = fill(tmp_path / "anna.csv", form, rows, {"1": cells}).filled[item_name("1")]
    assert filled["better"] == "A"
    assert "faults_a" not in filled


def doubled(text: str) -> str:
    return text + text.splitlines()[-1] + "\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("score", "grade"), "column 'score' is missing"),
        (doubled, "occurs twice"),
    ],
)
def test_files_that_are_no_sheets(
    tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    path = tmp_path / "a.csv"
    rows = [{**response_rows(1)[0], "references": ["two"]}]
    write_table(path, FORM, rows)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(CustosError, match=message):
        read_table(path, FORM)
    with pytest.raises(CustosError, match="filled-in sheet"):
        read_table(tmp_path / "missing.csv", FORM)
    with pytest.raises(CustosError, match="ending in .csv"):
        write_table(tmp_path / "a.xlsx", FORM, response_rows(1))


def test_a_tenth_of_a_sheet_is_gold_unless_told_otherwise(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", response_rows(18))
    gold = [
        {**row, "id": f"gold{n}", "gold": {"score": "Wrong"}}
        for n, row in enumerate(response_rows(9))
    ]
    known = write_rows(tmp_path / "gold.jsonl", gold)
    command = ("construct", "sheet", "hieval-qs", "--in", rows, "--gold", known)
    assert "18 rows and 2 gold items" in run(*command, "--out", tmp_path / "a.csv").stdout
    more = run(*command, "--gold-share", 0.25, "--out", tmp_path / "b.csv")
    assert "18 rows and 6 gold items" in more.stdout
