"""Workbooks are read as a person sees them, whatever program wrote them, and in bounds."""

import zipfile
from datetime import date, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.files import workbooks
from judging.files.csv_rows import SheetFile, write_spreadsheet

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STYLES = (
    "General",
    "000",
    "0.00",
    "0.0%",
    "yyyy-mm-dd",
    "d.m.yyyy hh:mm",
    "h:mm",
    "[h]:mm",
    "[HH]:MM:SS",
)
BUILT_IN = (14, 22, 9)


def workbook(
    path: Path, cells: str, texts: str = "", *, state: str = "visible", dates: str = ""
) -> Path:
    """Write a workbook as Excel does: a sheet, texts that cells share, and formats."""
    formats = "".join(
        f'<numFmt numFmtId="{170 + n}" formatCode="{code}"/>' for n, code in enumerate(STYLES)
    )
    numbers = [*(170 + n for n in range(len(STYLES))), *BUILT_IN]
    styles = "".join(f'<xf numFmtId="{number}"/>' for number in numbers)
    parts = {
        "_rels/.rels": f'<Relationships><Relationship Id="r" Type="{LINK}/officeDocument" '
        'Target="/xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{LINK}">{dates}<sheets>'
        f'<sheet name="Notes" state="{state}" r:id="b"/><sheet name="Rows" r:id="a"/></sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="a" Target="sheets/1.xml"/>'
        '<Relationship Id="b" Target="sheets/2.xml"/></Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{texts}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts>{formats}</numFmts><cellXfs>{styles}'
        "</cellXfs></styleSheet>",
        "xl/sheets/1.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{cells}</worksheet>',
        "xl/sheets/2.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{HEADER}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def text(place: str, content: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{content}</t></is></c>'


HEADER = f'<row r="1">{text("A1", "x")}{text("B1", "y")}</row>'


def rows(path: Path) -> dict[int, Any]:
    return dict(SheetFile(path).rows())


@pytest.mark.parametrize(
    ("style", "written", "value"),
    [
        (0, "1989", 1989),
        (0, "0.30000000000000004", 0.3),
        (1, "7", "007"),
        (1, "-7", "-007"),
        (2, "12.5", "12.50"),
        (3, "0.57", "57.0%"),
        (11, "0.5", "50%"),
        (4, "45293", date(2024, 1, 2)),
        (9, "45293", date(2024, 1, 2)),
        (9, "1", date(1900, 1, 1)),
        (9, "61", date(1900, 3, 1)),
        (5, "45293.378472222219", datetime(2024, 1, 2, 9, 5)),
        (10, "45293.378472222219", datetime(2024, 1, 2, 9, 5)),
        (6, "0.378472222222222", time(9, 5)),
        (7, "1.5", timedelta(hours=36)),
        (8, "0.5", timedelta(hours=12)),
    ],
)
def test_a_number_is_what_its_format_shows(
    style: int, written: str, value: object, tmp_path: Path
) -> None:
    cells = f'{HEADER}<row r="2"><c r="A2" s="{style}"><v>{written}</v></c></row></sheetData>'
    assert rows(workbook(tmp_path / "a.xlsx", cells, state="hidden")) == {1: {"x": value}}


def test_dates_of_a_workbook_may_begin_in_1904(tmp_path: Path) -> None:
    cells = f'{HEADER}<row r="2"><c r="A2" s="4"><v>43831</v></c></row></sheetData>'
    dates = '<workbookPr date1904="1"/>'
    path = workbook(tmp_path / "a.xlsx", cells, state="hidden", dates=dates)
    assert rows(path) == {1: {"x": date(2024, 1, 2)}}


def test_texts_truth_values_and_results_of_formulas(tmp_path: Path) -> None:
    texts = (
        "<si><t>Faust</t></si><si><r><t>Goe</t></r><r><t>the_x000D_</t></r><rPh><t>x</t></rPh></si>"
    )
    cells = (
        '<row r="3"><c r="A3" t="s"><v>0</v></c><c r="C3" t="s"><v>1</v></c></row>'
        '<row r="4"><c t="b"><v>1</v></c><c t="str"><f>A1</f><v>so</v></c>'
        "<c><f>1+1</f><v>2</v></c></row>"
        '<row r="7"><c r="C7" t="inlineStr"><is><t>~\'=1</t></is></c></row></sheetData>'
    )
    file = SheetFile(workbook(tmp_path / "a.xlsx", cells, texts, state="hidden"))
    assert file.columns == ("Faust", "column 2", "Goethe")
    assert dict(file.rows()) == {
        1: {"Faust": True, "column 2": "so", "Goethe": 2},
        4: {"Goethe": "=1"},
    }


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ('<c r="B2"><f>A1</f></c>', "B2 holds a formula"),
        ('<c r="B2" t="e"><v>#REF!</v></c>', "B2 holds the error #REF!"),
        ('<c r="B2" s="4"><v>1e300</v></c>', "B2 holds the number 1e300"),
        (text("C2", "beyond"), "C2 has no name"),
    ],
)
def test_a_cell_that_cannot_be_known_costs_its_row_alone(
    cell: str, reason: str, tmp_path: Path
) -> None:
    cells = f'{HEADER}<row r="2">{cell}</row><row r="3">{text("A3", "z")}</row></sheetData>'
    found = rows(workbook(tmp_path / "a.xlsx", cells, state="hidden"))
    assert found[2] == {"x": "z"}
    assert isinstance(found[1], CustosError) and reason in str(found[1])


def test_a_cell_over_rows_is_in_each_and_one_over_columns_is_refused(tmp_path: Path) -> None:
    cells = HEADER + "".join(
        f'<row r="{n}">{text(f"A{n}", "q") if n in (2, 5) else ""}{text(f"B{n}", str(n))}</row>'
        for n in range(2, 6)
    )
    merged = '<mergeCells><mergeCell ref="A2:A4"/><mergeCell ref="A5:B5"/></mergeCells>'
    found = rows(workbook(tmp_path / "a.xlsx", f"{cells}</sheetData>{merged}", state="hidden"))
    assert [found[n] for n in (1, 2, 3)] == [{"x": "q", "y": str(n)} for n in (2, 3, 4)]
    assert "A5:B5" in str(found[4])


def test_the_other_sheets_are_named(tmp_path: Path) -> None:
    file = SheetFile(workbook(tmp_path / "a.xlsx", f"{HEADER}</sheetData>"))
    assert "'Notes'" in file.doubt and "'Rows'" in file.doubt


def test_bombs_and_other_files_are_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.xlsx"

    def fault(cells: str, **given: str) -> str:
        with pytest.raises(CustosError) as error:
            SheetFile(workbook(path, cells, state="hidden", **given))
        return str(error.value)

    many = "".join(f"<row>{'<c><v>1</v></c>' * 10}</row>" for _ in range(20))
    monkeypatch.setattr(workbooks, "MAX_CELLS", 150)
    assert "more than 150 cells" in fault(f"{many}</sheetData>")
    far = '<mergeCells><mergeCell ref="A1:XFD1"/></mergeCells>'
    assert "more than 150 merged cells" in fault(f"{HEADER}</sheetData>{far}")
    assert "where a sheet has none" in fault(
        f'<row r="99999999">{text("A1", "x")}</row></sheetData>'
    )
    assert "more than 150 cells" in fault(f"{HEADER}</sheetData>", texts="<si/>" * 151)
    assert "is no .xlsx" in fault("<row>")
    assert "damaged" in fault('<row r="1"><c t="s"><v>5</v></c></row></sheetData>')
    monkeypatch.setattr(workbooks, "MAX_TREE_BYTES", 10)
    assert "unpacks to more" in fault(f"{HEADER}</sheetData>")
    for content in (b"a,b\n", b"\xd0\xcf\x11\xe0" * 9, b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(CustosError, match=f"{path}: is (no|an old)"):
            SheetFile(path)


def test_an_entity_that_grows_ends_the_reading(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", f"{HEADER}</sheetData>", state="hidden")
    entities = "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 1000}">' for n in range(9)
    )
    bomb = f"<!DOCTYPE x [{entities}]><worksheet><sheetData><row><c t='str'><v>&e8;</v></c></row>"
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    parts["xl/sheets/1.xml"] = f"{bomb}</sheetData></worksheet>".encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(CustosError, match="is no .xlsx workbook"):
        SheetFile(path)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])), min_size=1))
def test_every_text_comes_back(texts: list[str]) -> None:
    texts = [each.replace("\ufffe", "").replace("\uffff", "") for each in texts]
    texts += ["=1+1", "~'=1", "_x0041_", "a\r\nb", " x ", "007", "1e5", "<&>", "\\N"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.xlsx"
        write_spreadsheet(path, ["n", "x"], [[n, each] for n, each in enumerate(texts)])
        file = SheetFile(path)
    found = {row["n"]: row.get("x", "") for _, row in file.rows() if isinstance(row, dict)}
    assert found == {n: each if each.strip() else "" for n, each in enumerate(texts)}


def test_a_column_offers_words_and_what_no_sheet_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.xlsx"
    write_spreadsheet(path, ["x", "y"], [["1", None]], choices={"y": ["ja", "nein"]})
    with zipfile.ZipFile(path) as archive:
        sheet = archive.read("xl/sheet.xml").decode()
    assert 'sqref="B2:B2"' in sheet and '<formula1>"ja,nein"</formula1>' in sheet
    with pytest.raises(CustosError, match="cell B2 would hold 40,000 characters"):
        write_spreadsheet(tmp_path / "b.xlsx", ["x", "y"], [["1", "z" * 40_000]])
    monkeypatch.setattr(workbooks, "MAX_ROWS", 3)
    with pytest.raises(CustosError, match="cell A4 is beyond"):
        write_spreadsheet(tmp_path / "b.xlsx", ["x"], [["1"]] * 3)
    assert not (tmp_path / "b.xlsx").exists()
