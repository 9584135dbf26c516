"""Cells are the same fields whatever file holds them: lists, numbers, times, parts, pictures."""

import base64
import hashlib
import json
import struct
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from data_prep.tables.cells import content_name, image_names, save_image
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, parse_table
from judging.errors import CustosError, FieldError
from judging.files.pictures import picture_size
from judging.files.records import write_records
from judging.types import JudgeRequest, LabelledExample
from tests.data_prep.tables.made_up import (
    HEAD,
    MAP,
    ROW,
    examples,
    lines,
    parquet,
    requests,
    save,
    save_table,
)

COLUMNS = {"references": "gold", "response": "said"}
SQUAD = {"text": ["Jane Austen", "Austen"], "answer_start": [3, 8]}
VQA = [{"answer": "two", "answer_id": 1}, {"answer": "2", "answer_id": 2}]


def of_columns(folder: Path, gold: Any, **columns: Any) -> Path:
    cells = {"question": ["?"] * len(gold), "gold": gold, "said": ["x"] * len(gold), **columns}
    pq.write_table(pa.table(cells), folder / "a.parquet")
    return folder / "a.parquet"


def references(path: Path) -> list[tuple[str, ...]]:
    return [request.references for request in requests(path, columns=COLUMNS)]


@pytest.mark.parametrize(
    ("cell", "separator", "references"),
    [
        ("a; b;", None, ("a", "b")),
        ("a|b;c", "|", ("a", "b;c")),
        ('["a; b", "c"]', None, ("a; b", "c")),
        ("[1, 2]", None, ("[1, 2]",)),
        ("[0.8, 1.2]; 1", None, ("[0.8, 1.2]", "1")),
        # As pandas writes a column of lists, and of arrays.
        ("""['a; b', "it's", 'c"d', 'e\\nf']""", None, ("a; b", "it's", 'c"d', "e\nf")),
        ("['a' 'b c'\n 'd']", None, ("a", "b c", "d")),
        ("['a', None, nan, '']", None, ("a",)),
        ('["a", null]', None, ("a",)),
        ("[None]", None, ("[None]",)),
        ("['a', 1]", None, ("['a', 1]",)),
        (r"['\d']", None, (r"['\d']",)),
        (r"['\x']", None, (r"['\x']",)),
        # No entity of HTML is cut.
        ("AT&amp;T", None, ("AT&amp;T",)),
        ("O&#039;Connor;Sin&eacute;ad", None, ("O&#039;Connor", "Sin&eacute;ad")),
        ("AT&T;Bell", None, ("AT&T", "Bell")),
        ("R&nosuch;D", None, ("R&nosuch", "D")),
    ],
)
def test_lists_in_a_cell(
    tmp_path: Path, cell: str, separator: str | None, references: tuple[str, ...]
) -> None:
    row = {"question": "?", "references": cell, "response": "x"}
    path = save_table(tmp_path / "a.csv", [row], list(row))
    assert requests(path, separator=separator)[0].references == references


@pytest.mark.parametrize("mapped", [{}, {"group": "question"}])
def test_numbers_and_truth_values_are_texts(tmp_path: Path, mapped: dict[str, str]) -> None:
    row = {"id": 7, "question": "?", "references": 4, "response": 4.5, "label": 1}
    path = lines(tmp_path / "a.jsonl", row)
    [example] = examples(path, columns=mapped, labels={"1": "Wrong"})
    assert (example.id, example.references, example.response) == ("7", ("4",), "4.5")
    assert example.label == "Wrong"
    with pytest.raises(CustosError, match=r"'true' \(1 row, .*\) is not among them"):
        examples(lines(path, {**row, "label": True}), columns=mapped)
    row = {"question": "?", "gold": [1989, None], "model_answer": 1991.5, "human_label": False}
    [example] = examples(save(tmp_path / "a.json", json.dumps([row])), columns=MAP,
                         labels={"false": "Wrong"})  # fmt: skip
    assert (example.references, example.response, example.label) == (("1989",), "1991.5", "Wrong")


@pytest.mark.parametrize(
    ("gold", "texts"),
    [
        (pa.array([4.7, 3.0], pa.float32()), ["4.7", "3.0"]),
        (pa.array([Decimal("12.50"), Decimal("3.00")]), ["12.50", "3.00"]),
        (pa.array([Decimal("0E-10")]), ["0.0000000000"]),
        (pa.array([date(2024, 1, 2)]), ["2024-01-02"]),
        (pa.array([datetime(2024, 1, 2), None, datetime(2024, 1, 3)]),
         ["2024-01-02", "2024-01-03"]),
        (pa.array([datetime(2024, 1, 2), datetime(2024, 1, 3, 9, 5)]),
         ["2024-01-02T00:00:00", "2024-01-03T09:05:00"]),
        (pa.array([time(9, 5)]), ["09:05:00"]),
        (pa.array([1989.0, None, 2001.0]), ["1989", "2001"]),
        (pa.array([1989.0, 2000.5]), ["1989.0", "2000.5"]),
        (pa.array([1e22, 5.0]), ["1e+22", "5.0"]),
        (pa.array([b"caf\xc3\xa9"]), ["café"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([timedelta(minutes=90)]), ["1:30:00"]),
    ],
)  # fmt: skip
def test_a_value_of_parquet_is_the_text_that_a_person_sees(
    tmp_path: Path, gold: pa.Array, texts: list[str]
) -> None:
    """Alone, and as the elements of a list."""
    left = iter(texts)
    alone = [(next(left),) if value.is_valid else () for value in gold]
    assert references(of_columns(tmp_path, gold)) == alone
    listed = pa.array([gold.to_pylist()], pa.list_(gold.type))
    assert references(of_columns(tmp_path, listed)) == [tuple(texts)]


def test_whole_numbers_that_pandas_stores_with_a_fraction(tmp_path: Path) -> None:
    """Ids, labels and references alike, in Parquet and in JSONL; decided by the whole column."""
    frame = pd.DataFrame(
        {"question": ["?", "?", "?"], "gold": [1989, None, 3], "said": "x", "y": [1, 0, None]}
    )
    mapping = TableMapping(
        columns={**COLUMNS, "label": "y"}, labels={"1": "Correct", "0": "Wrong"}, task="hieval-qs"
    )
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    assert "1989.0" in (tmp_path / "a.jsonl").read_text()
    for name in ("a.parquet", "a.jsonl"):
        first, _, third = parse_table(tmp_path / name, LabelledExample, mapping)
        assert isinstance(first[1], LabelledExample)
        assert (first[1].references, first[1].label) == (("1989",), "Correct")
        assert isinstance(third[1], BadRow)
        assert third[1].error.field == "label"  # type: ignore[attr-defined]


def test_metadata_is_json_whatever_the_column_holds(tmp_path: Path) -> None:
    path = of_columns(
        tmp_path,
        ["x"],
        day=[date(2024, 1, 2)],
        price=[Decimal("1.50")],
        by=[b"m1"],
        png=[b"\xff"],
        took=[timedelta(seconds=5)],
        key=pa.array([UUID(int=7)], pa.uuid()),
    )
    [request] = requests(path, columns=COLUMNS)
    assert request.metadata == {
        "day": "2024-01-02",
        "price": "1.50",
        "by": "m1",
        "took": "0:00:05",
        "key": str(UUID(int=7)),
    }
    write_records(tmp_path / "out.jsonl", [request.model_dump()])
    path = parquet(tmp_path / "b.parquet", ROW | {"metadata": {"a": "b", "png": b"\xff"}})
    [request] = requests(path)
    assert request.metadata == {"a": "b", "png": None}
    write_records(tmp_path / "out.jsonl", [request])


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("value", [None, float("nan"), "", " "])
@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_a_value_that_is_missing_is_so_in_every_file(
    tmp_path: Path, kind: str, value: Any, mapped: bool
) -> None:
    """As a response it is an empty one; as references it is none, and as a label none either."""
    full = {"question": "?", "references": "r", "response": "x", "label": "Wrong"}
    rows = [full, *({**full, name: value} for name in ("response", "references", "label"))]
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pd.DataFrame(rows).to_parquet(path)  # NaN in a column of texts becomes null
    elif kind == "json":
        path.write_text(json.dumps(rows))
    else:
        lines(path, *rows)
    mapping = TableMapping(columns={"response": "response"} if mapped else {})
    first, second, *bad = [row for _, row in parse_table(path, LabelledExample, mapping)]
    assert isinstance(first, LabelledExample)
    assert isinstance(second, LabelledExample)
    assert (first.response, second.response) == ("x", "")
    fields = [row.error.field for row in bad if isinstance(row, BadRow)]  # type: ignore[attr-defined]
    assert fields == ["references", "label"]


COMPOSED, DECOMPOSED = "réussi", "re\N{COMBINING ACUTE ACCENT}ussi"


@pytest.mark.parametrize(("ours", "theirs"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_names_and_labels_are_equal_however_unicode_writes_them(
    tmp_path: Path, ours: str, theirs: str
) -> None:
    path = save(tmp_path / "a.csv", f"{HEAD},label\n?,x,y,{theirs.upper()}\n")
    assert examples(path, labels={ours: "Correct"})[0].label == "Correct"
    for path in (
        save(tmp_path / "b.csv", f"question,gold,{theirs}\n?,x,y\n"),
        lines(tmp_path / "b.jsonl", {"question": "?", "gold": "x", theirs: "y"}),
    ):
        [request] = requests(path, columns={"references": "gold", "response": ours})
        assert (request.response, request.metadata) == ("y", {})


@pytest.mark.parametrize(
    ("cells", "column", "references"),
    [
        ({"answers": SQUAD}, "answers.text", ("Jane Austen", "Austen")),
        ({"answers": SQUAD}, "answers.text.1", ("Austen",)),
        ({"answers": VQA}, "answers.answer", ("two", "2")),
        ({"answers": VQA}, "answers.0.answer", ("two",)),
        ({"answers": {"value": "two", "aliases": []}}, "answers.value", ("two",)),
        # Names may hold dots themselves.
        ({"answers": SQUAD, "answers.text": ["she"]}, "answers.text", ("she",)),
        ({"gold.texts": ["a", "b"]}, "gold.texts.1", ("b",)),
        ({"gold": {"x.y": {"texts": "a"}}}, "gold.x.y.texts", ("a",)),
        ({"gold.x": {"z": "a"}, "gold": {"x": {"y": "b"}}}, "gold.x.y", ("b",)),
        ({"gold.re\u0301f": ["a"]}, "gold.r\xe9f.0", ("a",)),
        # Nearly called like our field ``annotators``.
        ({"annotations": [{"result": ["x"]}]}, "annotations.0.result", ("x",)),
    ],
)
def test_a_part_of_a_cell_fills_a_field(
    tmp_path: Path, cells: dict[str, Any], column: str, references: tuple[str, ...]
) -> None:
    path = lines(tmp_path / "a.jsonl", {"question": "?", "response": "x", **cells})
    [request] = requests(path, columns={"references": column})
    assert request.references == references
    assert request.metadata == {name: cells[name] for name in cells if name != column}


def test_a_cell_without_the_part_is_empty_in_its_row(tmp_path: Path) -> None:
    rows = [{"question": "?", "response": "x", "answers": cell} for cell in (SQUAD, {}, None)]
    path = lines(tmp_path / "rows.jsonl", *rows)
    read = requests(path, columns={"references": "answers.text"})
    assert [request.references for request in read] == [("Jane Austen", "Austen"), (), ()]
    with pytest.raises(CustosError, match="no column 'answers.txt' for 'references'"):
        requests(path, columns={"references": "answers.txt"})


@pytest.mark.parametrize(
    ("field", "cell", "text"),
    [
        ("response", [{"type": "text", "text": "She."}], "She."),
        ("response", {"parts": [{"text": "She."}]}, "She."),
        ("response", {"a.b": "no name", "c": {"d": "She."}}, "She."),
        ("response", ["She.", "They."], "She."),
        ("references", SQUAD, "Austen"),
    ],
)
def test_every_hint_names_a_part_that_is_read(
    tmp_path: Path, field: str, cell: Any, text: str
) -> None:
    path = lines(tmp_path / "rows.jsonl", {**ROW, field: None, "m": cell})
    with pytest.raises(CustosError) as error:
        requests(path, columns={field: "m"})
    options = str(error.value).partition("name a part of it: ")[2].split(" or ")
    named = [option.partition(f"{field}=")[2] for option in options]
    read = [requests(path, columns={field: name})[0] for name in named]
    assert any(text in (*each.responses, *each.references) for each in read)


@pytest.mark.parametrize(
    "metadata", ['{"note": "\\ud800"}', '{"a":' * 300 + "1" + "}" * 300], ids=["half", "deep"]
)
def test_metadata_in_a_cell_that_could_not_be_written_again(tmp_path: Path, metadata: str) -> None:
    """Refuse the row when it is read: writing it failed, after everything else was done."""
    quoted = metadata.replace('"', '""')
    path = save(tmp_path / "rows.csv", f'{HEAD},metadata\n?,x,y,"{quoted}"\n')
    with pytest.raises(FieldError) as error:
        requests(path)
    assert error.value.field == "metadata"


def encoded(kind: str, picture: Image.Image | None = None, **options: object) -> bytes:
    file = BytesIO()
    (picture or Image.new("RGB", (4, 3))).save(file, kind, **options)
    return file.getvalue()


def test_pictures_are_relative_to_the_table(tmp_path: Path) -> None:
    url = "data:image/png;base64,AAAA"
    text = f'{HEAD},images\n?,x,y,a.png;b.png\n?,x,y,"{url}"\n'
    first, second = requests(save(tmp_path / "a.csv", text))
    assert first.images == (str(tmp_path / "a.png"), str(tmp_path / "b.png"))
    assert second.images == (url,)


def test_bytes_of_pictures_are_data_urls_that_services_know(tmp_path: Path) -> None:
    """Take a JPEG that names further pictures, as phones make them, for a JPEG."""
    content = encoded("MPO", save_all=True, append_images=[Image.new("RGB", (4, 3))])
    [request] = requests(parquet(tmp_path / "a.parquet", {**ROW, "images": [{"bytes": content}]}))
    assert request.images[0].startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_bytes_alone_and_base64_are_pictures(tmp_path: Path, kind: str, in_folder: bool) -> None:
    """Read what pandas writes, beside the records of the hub, and the tables of benchmarks."""
    folder = tmp_path / "pictures" if in_folder else None
    path = parquet(tmp_path / "a.parquet", {**ROW, "images": encoded(kind)})
    [request] = requests(path, folder)
    assert [picture_size(name) for name in request.images] == [(4, 3)]
    noise = Image.effect_noise((500, 400), 90)
    text = base64.b64encode(encoded(kind, noise)).decode()
    assert len(text) > 50_000 or kind == "WEBP"
    head = HEAD.replace(",", "\t")
    [request] = requests(save(tmp_path / "a.tsv", f"{head}\timages\n?\tx\ty\t{text}\n"), folder)
    assert [picture_size(name) for name in request.images] == [(500, 400)]


@pytest.mark.parametrize("kind", ["AVIF", "BMP"])
def test_bytes_that_are_no_picture_are_one_bad_row(tmp_path: Path, kind: str) -> None:
    """Refuse a broken header, and one that claims 60,000 x 60,000 pixels."""
    if kind == "AVIF":
        content = encoded(kind).replace(b"iloc", b"xxxx")
    else:
        size = struct.pack("<ii", 60_000, 60_000)
        content = encoded(kind).replace(struct.pack("<ii", 4, 3), size)
    path = parquet(tmp_path / "a.parquet", {**ROW, "images": [{"bytes": content}]})
    [(_, bad)] = parse_table(path, JudgeRequest)
    assert isinstance(bad, BadRow)
    assert isinstance(bad.error, FieldError)
    assert bad.error.field == "images"
    with pytest.raises(CustosError):
        save_image(content, tmp_path)


def test_images_are_saved_once_under_a_name_made_from_their_content(tmp_path: Path) -> None:
    content = encoded("JPEG")
    path = save_image(content, tmp_path / "images")
    assert path.name == f"{hashlib.sha256(content).hexdigest()[:16]}.jpeg"
    assert path.name == content_name(content, "jpeg")
    assert path.read_bytes() == content
    before = path.stat()
    assert save_image(content, tmp_path / "images") == path
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert list(path.parent.iterdir()) == [path]


def test_a_value_that_names_pictures(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    value: list[Any] = ["a.png", {"path": "b.png", "bytes": None}, None, "", []]
    assert image_names(value, folder, None) == (str(folder / "a.png"), str(folder / "b.png"))
    for wrong in (7, {"bytes": b"abc"}):
        for save_to in (folder, None):
            with pytest.raises(CustosError):
                image_names(wrong, folder, save_to)
