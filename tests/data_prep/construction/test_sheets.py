"""Sheets as CSV, and those of several people brought together by the rules of the papers."""

import csv
import io
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.chartom.item import ChartomItem
from data_prep.construction.forms.base import FORMS, Form
from data_prep.construction.sheets import (
    Collected,
    collect,
    item_name,
    mix_in_gold,
    read_sheet_rows,
    read_table,
    write_table,
)
from data_prep.construction.steps.base import Row
from data_prep.construction.steps.truthfulvqa import CATEGORY_OF
from judging.errors import CustosError
from judging.tasks import get_task
from judging.types import LabelledExample
from tests.cli.prep.made_up import run, write_rows
from tests.data_prep.construction.made_up import Cells, fill, response_rows

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


def test_files_that_are_no_sheets(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.csv", [{**response_rows(1)[0], "references": ["two"]}]
    write_table(path, FORM, rows)
    text = path.read_text(encoding="utf-8")
    for wrong, message in (
        (text.replace("score", "grade"), "column 'score' is missing"),
        (text + text.splitlines()[-1] + "\n", "occurs twice"),
    ):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(CustosError, match=message):
            read_table(path, FORM)
    with pytest.raises(CustosError, match="filled-in sheet"):
        read_table(tmp_path / "missing.csv", FORM)
    with pytest.raises(CustosError, match="ending in .csv"):
        write_table(tmp_path / "a.xlsx", FORM, rows)


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


WHY = " ".join(["because"] * 60)


def brought_together(
    folder: Path,
    form: Form,
    rows: list[Row],
    people: dict[str, Cells],
    third: Cells | None = None,
    **options: Any,
) -> Collected:
    sheets = [fill(folder / f"{name}.csv", form, rows, cells) for name, cells in people.items()]
    last = None if third is None else fill(folder / "carla.csv", form, rows, third)
    return collect(form, rows, sheets, last, **options)


def test_two_people_and_a_third(tmp_path: Path) -> None:
    form, rows = FORMS.get("hieval-ea"), response_rows(5)
    ids = [row["id"] for row in rows]
    wrong = {"score": "Wrong", "error_type": "Other"}
    people = {
        "anna": {ids[0]: {"score": "correct"}, ids[1]: wrong, ids[2]: wrong, ids[3]: wrong},
        "ben": {
            ids[0]: {"score": "Correct"},
            ids[1]: {"score": "Correct"},
            ids[2]: {"score": "Wrong", "error_type": "overthinking"},
        },
    }
    first = brought_together(tmp_path, form, rows, people)
    assert [row["label"] for row in first.rows] == ["Correct"]
    assert [row["id"] for row in first.disagreements] == ids[1:3]
    assert first.disagreements[0]["differs"] == ["score"]
    assert first.disagreements[1]["differs"] == ["error_type"]
    assert first.disagreements[1]["annotations"]["ben"]["error_type"] == "Overthinking"
    assert first.unfinished == ids[3:]
    assert [each.values for each in first.pairs["score"]] == [
        ("Correct", "Correct"),
        ("Wrong", "Correct"),
        ("Wrong", "Wrong"),
    ]

    third = {ids[1]: {"score": "Correct"}, ids[2]: {"score": "Partial", "error_type": "Other"}}
    settled = brought_together(tmp_path, form, rows, people, third)
    assert [row["label"] for row in settled.rows] == ["Correct", "Correct", "Partial; Other"]
    assert settled.pairs == first.pairs
    examples = [LabelledExample.model_validate(row) for row in settled.rows]
    assert [example.annotators for example in examples[1:]] == [("carla",), ("carla",)]
    task = get_task("hieval-ea")
    assert [task.target(example) for example in examples] == [
        "Correct",
        "Correct",
        "Partial; Other",
    ]


def test_one_person_discards_and_other_answers_go_to_a_third(tmp_path: Path) -> None:
    form = FORMS.get("simplevqa")
    rows = [
        {"id": str(n), "question": f"Who is it, {n}?", "answer": "Ada Lovelace"} for n in range(4)
    ]
    fine = {"suitable": "yes", "answer_found": "ada lovelace.", "source1": "a", "source2": "b"}
    bad = {"suitable": "no", "note": "two people"}
    other = {**fine, "answer_found": "Grace Hopper", "source1": "c"}
    people = {
        "anna": {"0": fine, "1": bad, "2": fine, "3": other},
        "ben": {"0": {**fine, "source2": "d"}, "1": fine, "2": other, "3": other},
    }
    collected = brought_together(tmp_path, form, rows, people)
    assert [(row["id"], row["sources"]) for row in collected.rows] == [("0", ["a", "b", "d"])]
    assert [(row.id, row.reason, row.detail) for row in collected.discarded] == [
        ("1", "unsuitable", "two people"),
        ("3", "people's answer differs", "'Grace Hopper', not 'Ada Lovelace'"),
    ]
    assert [row["id"] for row in collected.disagreements] == ["2"]
    settled = brought_together(tmp_path, form, rows, people, {"2": fine})
    assert [row["id"] for row in settled.rows] == ["0", "2"]


def judged(better: str, score_a: int, score_b: int, **fields: str) -> dict[str, str]:
    scores = {"score_a": str(score_a), "score_b": str(score_b)}
    return {"better": better, **scores, "rationale": WHY, **fields}


def test_pairs_go_to_a_third_for_preference_score_or_tags(tmp_path: Path) -> None:
    form = FORMS.get("truthful-pair")
    rows = [
        {"id": str(n), "question": "Boats?", "response_a": "Two.", "response_b": "Three."}
        for n in range(5)
    ]
    mine = judged("A", 9, 4, faults_b="visual misinterpretation; distracting additions")
    swapped = {**mine, "faults_b": "distracting additions;visual misinterpretation"}
    people = {
        "anna": dict.fromkeys("01234", mine),
        "ben": {
            "0": {**swapped, "score_b": "1"},
            "1": {**mine, "better": "B"},
            "2": {**mine, "score_b": "0"},  # four apart
            "3": {**mine, "faults_b": "distracting additions"},
            "4": {**mine, "better": "None", "score_a": "5"},
        },
    }
    collected = brought_together(tmp_path, form, rows, people)
    assert [row["differs"] for row in collected.disagreements] == [
        ["better"],
        ["score_b"],
        ["faults_b"],
        ["score_a", "better"],
    ]
    [row] = collected.rows
    example = LabelledExample.model_validate(row)
    assert (example.label, example.annotators) == ("A", ("anna", "ben"))
    assert example.tags == ("B: visual misinterpretation", "B: distracting additions")
    assert example.metadata["scores"] == {"A": 9.0, "B": 2.5}
    assert example.metadata["quality"] == {"A": "keep", "B": "exclude"}
    assert example.metadata["faults"]["A"] == []
    get_task("truthful-pair").check(example)


def test_up_to_four_responses_are_scored_on_one_screen(tmp_path: Path) -> None:
    form = FORMS.get("truthful-scores")
    rows = [
        {"id": str(n), "question": "Boats?", "responses": ["Two.", "Three.", "A rock."]}
        for n in range(5)
    ]
    assert list(form.shown(rows[0])) == ["Question", "Response A", "Response B", "Response C"]
    mine = {"score_a": "9", "score_b": "4", "score_c": "0", "rationale": "because " * 60}
    without_c = {k: v for k, v in mine.items() if k != "score_c"}
    people = {
        "anna": {**dict.fromkeys("0123", mine), "4": without_c},
        "ben": {
            "0": {**mine, "score_b": "7"},
            "1": {**mine, "score_c": "4"},  # four apart
            "2": without_c,
            "3": {**mine, "score_d": "1"},
            "4": without_c,
        },
    }
    collected = brought_together(tmp_path, form, rows, people)
    [row] = collected.rows
    assert row["metadata"]["scores"] == {"A": 9.0, "B": 5.5, "C": 0.0}
    assert row["metadata"]["quality"] == {"A": "keep", "B": "borderline", "C": "exclude"}
    assert row["id"] == "0"
    differs = [(row["id"], row["differs"]) for row in collected.disagreements]
    assert differs == [("1", ["score_c"]), ("2", ["score_c"]), ("3", ["score_d"])]
    [lost] = collected.discarded
    assert lost.reason == "not scored"


def five(*given: dict[str, str]) -> dict[str, Cells]:
    """Return what each of five people filled in for row 1."""
    return {name: {"1": cells} for name, cells in zip("abcde", given, strict=True)}


def test_of_five_people_most_decide(tmp_path: Path) -> None:
    form, rows = FORMS.get("truthfulvqa-picture"), [{"id": "1", "what_misleads": "It floats."}]
    physical = {"misleads": "yes", "subcategory": "Physical Feature Manipulation"}
    others = [{"misleads": "yes", "subcategory": name} for name in list(CATEGORY_OF)[:3]]
    assert physical["subcategory"] not in [other["subcategory"] for other in others]

    def outcome(*given: dict[str, str]) -> Collected:
        return brought_together(tmp_path, form, rows, five(*given))

    [row] = outcome(others[0], physical, others[1], physical, physical).rows
    assert row["subcategory"] == "Physical Feature Manipulation"
    assert row["annotators"] == ["b", "d", "e"]
    split = outcome(others[0], others[1], others[2], physical, physical)
    assert [row["differs"] for row in split.disagreements] == [["subcategory"]]
    doubted = outcome(physical, physical, physical, physical, {"misleads": "no"})
    assert [row["differs"] for row in doubted.disagreements] == [["misleads"]]
    assert len(doubted.pairs["misleads"]) == 10
    third = brought_together(
        tmp_path, form, rows, five(*others, physical, physical), {"1": physical}
    )
    assert [row["annotators"] for row in third.rows] == [["carla"]]


def test_five_people_inspect_a_question(tmp_path: Path) -> None:
    form = FORMS.get("truthfulvqa-inspection")
    question = {"level": 1, "question": "?", "options": ["x", "y"], "ground_truth": "A"}
    rows = [{"id": "1", "subcategory": "s", **question}]
    fine = dict.fromkeys(("level_fits", "difficulty_fits", "options_exclusive"), "yes")
    fine["answer_right"] = "yes"
    four = {name: {"1": fine} for name in "abcd"}
    assert brought_together(tmp_path, form, rows, four).unfinished == ["1"]
    [row] = brought_together(tmp_path, form, rows, five(*[fine] * 5)).rows
    assert row["inspected_by"] == list("abcde")
    [row] = brought_together(tmp_path, form, rows, five(*[fine] * 4, {**fine, "note": "no"})).rows
    faulty = five(*[fine] * 4, {**fine, "level_fits": "no", "note": "too hard"})
    [lost] = brought_together(tmp_path, form, rows, faulty).discarded
    assert lost.reason == "returned"


@pytest.mark.parametrize("name", ["truthful-pair", "truthful-scores"])
def test_rows_without_need_of_annotation_are_left_out(tmp_path: Path, name: str) -> None:
    form = FORMS.get(name)
    rows = [{"id": str(n), "question": "?", "responses": ["Two.", "Three."]} for n in range(3)]
    fine, out = judged("A", 9, 4), {"left_out": "yes"}
    if name == "truthful-scores":
        del fine["better"]
    people = {"anna": {"0": out, "1": out, "2": fine}, "ben": {"0": out, "1": fine, "2": fine}}
    collected = brought_together(tmp_path, form, rows, people)
    assert collected.left_out == ["0"]
    assert [row["differs"] for row in collected.disagreements] == [["left_out"]]
    assert [row["id"] for row in collected.rows] == ["2"]
    assert collected.counts["left_out"] == 1
    assert [each.row for each in collected.pairs["score_a"]] == ["2"]
    third = brought_together(tmp_path, form, rows, people, {"1": out})
    assert third.left_out == ["0", "1"]
    with pytest.raises(CustosError, match="'rationale' is not asked for"):
        brought_together(tmp_path, form, rows, {"anna": {"0": {**out, "rationale": WHY}}})


def test_everybodys_answers_count_in_a_questionnaire(tmp_path: Path) -> None:
    form = FORMS.get("chartom")
    chart = {"kind": "bar", "question_type": "number", "answer": 1.2, "unit": "million bags"}
    asked = {"id": "G1_Q1_2", "question": "How many?", "human_answers": ["1.2"], "hmi": 0.3}
    rows = [asked | chart]
    people = {
        name: {"G1_Q1_2": {"answer": answer}}
        for name, answer in {"anna": "-5", "ben": "No answer", "cem": "6 million"}.items()
    }
    [row] = brought_together(tmp_path, form, rows, people).rows
    assert row["human_answers"] == ["1.2", "-5", None, "6 million"]
    assert ChartomItem.model_validate(row).measured_hmi([6, 300]) == 0.5
    assert "hmi" not in row, "a borrowed one"


def test_gold_items_are_scored_and_left_out(tmp_path: Path) -> None:
    form, rows = FORMS.get("hieval-qs"), response_rows(3)
    gold = [
        {**row, "id": f"gold{n}", "gold": {"score": "Wrong"}}
        for n, row in enumerate(response_rows(3))
    ]
    cells = {row["id"]: {"score": "Wrong"} for row in rows + gold[:2]}
    slips = {**cells, "gold1": {"score": "Partial"}}
    sheets = [
        fill(tmp_path / f"{name}.csv", form, rows + gold, filled)
        for name, filled in {"anna": cells, "ben": slips}.items()
    ]
    collected = collect(form, rows, sheets, gold=gold)
    assert collected.gold == {"anna": (2, 2), "ben": (1, 2)}
    assert (len(collected.rows), collected.disagreements) == (3, [])
    with pytest.raises(CustosError, match=r"sheet 'anna': item '\w+' is no row of these"):
        collect(form, rows, sheets)
    with pytest.raises(CustosError, match="same name"):
        collect(form, rows, [sheets[0], sheets[0]], gold=gold)


def test_rows_of_a_prepared_data_set_are_labelled_anew(tmp_path: Path) -> None:
    row: Row = {"id": "1", "question": "Boats?", "responses": ["two"], "label": "Wrong; Other"}
    row |= {"error_type": "Other", "annotator_labels": {"cem": "Wrong; Other"}}
    assert FORM.shown(row)["Response"] == "two"
    collected = brought_together(
        tmp_path, FORM, [row], {name: {"1": {"score": "Correct"}} for name in ("anna", "ben")}
    )
    [settled] = collected.rows
    assert settled["label"] == "Correct"
    assert settled.keys().isdisjoint({"error_type", "annotator_labels"})


def test_rows_of_a_spreadsheet_hold_lists_in_cells(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("id,question,responses,images\n1,Boats?,two;three,a.png\n2,Cars?,1;2,\n")
    out = tmp_path / "anna.csv"
    run("construct", "sheet", "truthful-scores", "--in", table, "--out", out)
    first, second = sorted(
        csv.DictReader(out.open(encoding="utf-8-sig")), key=lambda row: row["Question"]
    )
    assert (first["Response A"], first["Response B"]) == ("two", "three")
    assert (first["pictures"], second["pictures"]) == (str(tmp_path.resolve() / "a.png"), "")
    table.write_text("id,question,references,response\n1,Who?,Ann;Ben,Ann\n")
    [row] = read_sheet_rows(table, FORM)
    assert row["references"] == ["Ann", "Ben"]


def test_a_number_below_one_is_not_the_number_behind_its_point() -> None:
    entry = FORMS.get("simplevqa").entries[1]
    assert entry.differs(".5", "5")
    assert not entry.differs("Five.", "five")


def test_columns_of_bytes_that_json_cannot_hold(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    columns = {"id": ["1"], "question": ["Boats?"], "blob": [b"\xff"], "day": [date(2026, 1, 2)]}
    pq.write_table(pa.table(columns), rows)
    assert read_sheet_rows(rows, FORMS.get("chartom")) == [
        {"id": "1", "question": "Boats?", "blob": None, "day": "2026-01-02"}
    ]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("hieval-qs", "score"),  # of the gold item
        ("charthal", "q_type"),
        ("simplevqa", "answer"),
        ("truthful-pair", "responses"),
        ("truthful-scores", "responses"),
        ("truthfulvqa-inspection", "level"),
    ],
)
def test_rows_that_a_form_cannot_show(tmp_path: Path, name: str, field: str) -> None:
    row: dict[str, Any] = {"id": "1", "question": "Boats?"}
    if field == "level":
        row |= {"options": ["a", "b"], "ground_truth": "A", "level": "high"}
    rows = write_rows(tmp_path / "rows.jsonl", [row])
    gold = write_rows(
        tmp_path / "gold.jsonl", [{"id": "2", "question": "Boats?", "gold": {"score": " "}}]
    )
    command = ["construct", "sheet", name, "--in", rows, "--out", tmp_path / "a.html"]
    command += ["--gold", gold] if field == "score" else []
    with pytest.raises(CustosError, match=rf"row '?[12]'?: field '{field}'"):
        run(*command)
