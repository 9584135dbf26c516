"""Official files of every benchmark: a JSON, JSONL, Parquet or TSV file, a folder, a hub id."""

import base64
import csv
import io
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from benchmarks.framework.base import BENCHMARKS, get_benchmark
from benchmarks.framework.files import check_ids, read_file, write_graded
from judging.errors import CustosError, FieldError

Row = dict[str, Any]

OFFICIAL: dict[str, Row] = {
    "charthal": {
        "id": "2_0", "figure_id": 2, "figure_path": "images/2.png", "subq_idx": 0,
        "q_type": "desc", "q_relation": "normal", "question": "How high?", "ref_answer": "5",
    },
    "chartom": {
        "id": "P1_1", "kind": "bar", "image": "images/2.png", "question": "How many bags?",
        "question_type": "number", "answer": 1.2, "unit": "million bags", "hmi": 0.2,
    },
    "simplevqa": {
        "data_id": 1, "image": "images/2.png", "language": "EN", "question": "Who?",
        "answer": "Rembrandt", "atomic_question": "Whose picture?", "atomic_fact": "Rembrandt",
        "vqa_category": "{'task_category': 'AC', 'subject_category': 'AR'}",
    },
    "truthfulvqa": {
        "question_id": "1", "image": "images/2.png", "question": "Which?", "level": 1,
        "category": "Eye Illusion", "subcategory": "x", "answer": "A",
    },
    "hieval": {
        "id": "1", "question": "Which?", "label": "Correct", "response": "A", "answer": "A",
        "images": "images/2.png",
    },
}  # fmt: skip


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(buffer, "png")
    return buffer.getvalue()


def write_tsv(path: Path, row: Row) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row), delimiter="\t")
        writer.writeheader()
        writer.writerow(row)


WRITERS: dict[str, Callable[[Path, Row], object]] = {
    "json": lambda path, row: path.write_text(json.dumps([row])),
    "jsonl": lambda path, row: path.write_text(json.dumps(row)),
    "parquet": lambda path, row: pq.write_table(pa.Table.from_pylist([row]), path),
    "tsv": write_tsv,
}


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_every_benchmark_loads_from_every_form(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = get_benchmark(name)
    picture = tmp_path / "images" / "2.png"
    picture.parent.mkdir()
    picture.write_bytes(png())
    loaded = {}
    for suffix, write in WRITERS.items():
        path = tmp_path / f"items.{suffix}"
        write(path, OFFICIAL[name])
        loaded[suffix] = benchmark.load(str(path))
        path.unlink()
    split = benchmark.hub_split
    (tmp_path / f"{split}-0-of-1.json").write_text(json.dumps([OFFICIAL[name]]))
    (tmp_path / "other.json").write_text("[]")
    (tmp_path / "manifest.json").write_text("{}")
    loaded["folder"] = benchmark.load(str(tmp_path))
    asked = []

    def load_dataset(*args: Any, **options: Any) -> datasets.Dataset:
        asked.append((args[0], options["split"]))
        return datasets.Dataset.from_list([OFFICIAL[name]])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.chdir(tmp_path)
    loaded["hub"] = benchmark.load("lab/benchmark")
    assert asked == [("lab/benchmark", split)]
    for form, rows in loaded.items():
        assert [str(row[benchmark.item_id]) for row in rows] == [
            str(OFFICIAL[name][benchmark.item_id])
        ], form
        assert rows[0]["images"] == [str(picture)], form
        if form != "tsv":  # whose cells are text
            assert rows == loaded["json"], form


def test_a_snapshot_of_a_hub_data_set(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name, number in (("train-0-of-1", 1), ("test-0-of-2", 2), ("test-1-of-2", 3)):
        row = {**OFFICIAL["simplevqa"], "data_id": number, "image": {"bytes": png(), "path": None}}
        pq.write_table(pa.Table.from_pylist([row]), data / f"{name}.parquet")
    (tmp_path / "README.md").write_text("x")
    rows = get_benchmark("simplevqa").load(str(tmp_path), tmp_path / "images")
    assert [row["data_id"] for row in rows] == [2, 3]
    assert Path(rows[0]["images"][0]).read_bytes() == png()
    assert "image" not in rows[0]  # bytes cannot be written to JSON


@pytest.mark.parametrize("suffix", ["tsv", "jsonl"])
def test_pictures_in_base_64(suffix: str, tmp_path: Path) -> None:
    row = {**OFFICIAL["simplevqa"], "image": base64.b64encode(png()).decode()}
    WRITERS[suffix](tmp_path / f"items.{suffix}", row)
    [loaded] = get_benchmark("simplevqa").load(str(tmp_path / f"items.{suffix}"), tmp_path / "out")
    assert Path(loaded["images"][0]).read_bytes() == png()
    assert "image" not in loaded


ROWS = [{"id": "a", "x": 1}, {"id": "b", "x": 2}]


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("x.json", "{", ""),
        ("x.json", '["a"]', " row 1"),
        ("x.json", '{"a": 3}', " row 'a'"),
        ("x.jsonl", '{"a": 1}\nnope\n', " row 2"),
        ("x.xlsx", "a,b", ""),
        ("x.tsv", "id\tx\n1\t2\t3\n", " row 1 below the header"),
        ("x.tsv", f"id\timage\n1\t/9j/4{'A' * 1000}!\n", " row 1 below the header: field 'image'"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, place: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(CustosError, match=f"{name}{place}: "):
        list(read_file(tmp_path / name))


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="none.json: "):
        list(read_file(tmp_path / "none.json"))
    with pytest.raises(CustosError, match=str(tmp_path)):
        get_benchmark("hieval").load(str(tmp_path))


@pytest.mark.parametrize(
    ("suffix", "keyed", "kind"),
    [("jsonl", False, None), ("json", True, dict), ("json", False, list)],
)
def test_graded_rows_read_back(tmp_path: Path, suffix: str, keyed: bool, kind: Any) -> None:
    path = tmp_path / f"out.{suffix}"
    write_graded(path, ROWS, keyed)
    assert list(read_file(path)) == ROWS
    if kind:
        assert isinstance(json.loads(path.read_text()), kind)


def test_ids_are_checked() -> None:
    check_ids(ROWS)
    # A number and its text are one key of a JSON object.
    wrong: list[list[Row]] = [[ROWS[0], ROWS[0]], [{"id": 1}, {"id": "1"}], [{"x": 1}]]
    for rows in wrong:
        with pytest.raises(FieldError) as error:
            check_ids(rows)
        assert (error.value.location, error.value.field) == (f"row {len(rows)}", "id")


@pytest.mark.parametrize("name", ["graded.json", "graded.jsonl"])
def test_cells_of_parquet_files_that_json_has_no_form_for(tmp_path: Path, name: str) -> None:
    """Write dates and bytes as text; they ended the command with a traceback after the grading."""
    row = {"id": "1", "day": date(2026, 1, 2), "price": Decimal("1.50"), "bytes": b"\xff"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "rows.parquet")
    write_graded(tmp_path / name, read_file(tmp_path / "rows.parquet"), keyed=False)
    [written] = read_file(tmp_path / name)
    assert written == {"id": "1", "day": "2026-01-02", "price": "1.50", "bytes": "_w=="}
