import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.construction.charthal.sheets import parse_ranges, read_sheet, write_sheet
from judging.errors import CustosError
from tests.data_prep.construction.charthal.examples import check, question

awkward = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1)


@settings(deadline=None, max_examples=40)
@given(awkward, awkward)
def test_sheets_give_back_what_went_in(
    tmp_path_factory: pytest.TempPathFactory, text: str, answer: str
) -> None:
    folder = tmp_path_factory.mktemp("sheets")
    sent = [question(0, question=text, ref_answer=answer), question(1, question='=1+1, "x"\n')]
    for name in ("a.csv", "a.jsonl"):
        write_sheet(folder / name, sent)
        back = read_sheet(folder / name)
        assert [
            row.model_dump(exclude={"status", "acceptable_ranges", "note"}) for row in back
        ] == [row.model_dump() for row in sent]
        assert {row.status for row in back} == {""}


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    write_sheet(tmp_path / "a.csv", [question(question="=HYPERLINK(1)", ref_answer="-5")])
    [row] = csv.DictReader((tmp_path / "a.csv").open(encoding="utf-8-sig"))
    assert (row["question"], row["ref_answer"]) == ("'=HYPERLINK(1)", "'-5")


def test_ranges_go_into_the_reference_as_charthal_words_them() -> None:
    ruled = check(question(), " KEEP ", acceptable_ranges="[4.5, 5.5]; [45%, 55%]").ruling()
    assert ruled is not None
    remark = "(Answers in the range [4.5, 5.5]; [45%, 55%] are ACCEPTABLE)"
    assert ruled.ref_answer == f"About 5. {remark}"
    again = check(ruled, "keep", acceptable_ranges="[4.5, 5.5]; [45%, 55%]").ruling()
    assert again == ruled


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
    with pytest.raises(ValueError, match=message):
        parse_ranges(text)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"status": "maybe"}, "sheet.csv row 1: field 'status'"),
        ({"q_type": "deep"}, "sheet.csv row 1: field 'q_type'"),
        ({"acceptable_ranges": "5"}, r"sheet.csv row 1: .*expected \[low, high\]"),
        ({"status": "keep", "question": " "}, "sheet.csv row 1: .*needs 'question'"),
    ],
)
def test_sheets_filled_in_wrongly(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [question()])
    [row] = csv.DictReader(path.open(encoding="utf-8-sig"))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow({**row, **changed})
    with pytest.raises(CustosError, match=message):
        read_sheet(path)
