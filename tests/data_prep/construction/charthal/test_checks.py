"""Sheets on which people correct questions, and the benchmark file made of them."""

import json
from pathlib import Path

import pytest

from data_prep.construction.charthal import QUESTIONS, rows_to_check, write_benchmark
from data_prep.construction.forms.base import FORMS
from data_prep.construction.forms.charthal import parse_ranges
from data_prep.construction.sheets import collect
from data_prep.construction.steps.base import Row
from judging.errors import CustosError
from tests.data_prep.construction.charthal.examples import question
from tests.data_prep.construction.sheets.made_up import fill

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


def test_awkward_texts_come_back_as_they_were(tmp_path: Path) -> None:
    text = '=HYPERLINK("http://x"); "x",\ny'
    row = {**question(0, question=text, ref_answer="-5").model_dump(), "images": []}
    sheet = fill(tmp_path / "anna.csv", FORM, [row], {"7_0": {"status": "keep"}})
    [kept] = collect(FORM, [row], [sheet]).rows
    assert (kept["question"], kept["ref_answer"]) == (text, "-5")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"status": "maybe"}, "field 'status': 'maybe' is not one of keep, discard"),
        ({"status": "keep", "q_type": "deep"}, "field 'q_type'"),
        ({"status": "keep", "acceptable_ranges": "5"}, r"expected \[low, high\]"),
        ({"status": "keep", "question": " "}, "'question' is not filled in"),
        ({"acceptable_ranges": "[1, 2]"}, "'status' is not filled in"),
    ],
)
def test_sheets_filled_in_wrongly(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    rows = sent_out(tmp_path, 1)
    with pytest.raises(CustosError, match=f"row 1 below the header: .*{message}"):
        fill(tmp_path / "anna.csv", FORM, rows, {"7_0": cells})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 to 5", r"expected \[low, high\]"),
        ("[5, 4]", "low <= high"),
        ("[a, b]", "two numbers"),
        ("[nan, 1]", "low <= high"),
        ("[0, inf]", "both finite"),
    ],
)
def test_ranges_that_are_none(text: str, message: str) -> None:
    with pytest.raises(CustosError, match=message):
        parse_ranges(text)
