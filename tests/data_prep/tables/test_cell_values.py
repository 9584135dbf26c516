"""Numbers, times, bytes and missing values are the same texts whatever file holds them."""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import datasets
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_prep.tables.examples import read_examples
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, parse_table, read_table
from judging.errors import CustosError
from judging.files.records import write_records
from judging.types import JudgeRequest, LabelledExample
from tests.data_prep.tables.made_up import save

COLUMNS = {"references": "gold", "response": "said"}


def parquet(folder: Path, gold: Any, **columns: Any) -> Path:
    cells = {"question": ["?"] * len(gold), "gold": gold, "said": ["x"] * len(gold), **columns}
    pq.write_table(pa.table(cells), folder / "a.parquet")
    return folder / "a.parquet"


def references(path: Path) -> list[tuple[str, ...]]:
    rows = read_table(path, JudgeRequest, TableMapping(columns=COLUMNS))
    return [request.references for _, request in rows]


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
    alone = references(parquet(tmp_path, gold))
    assert alone == [(text,) if value.is_valid else () for text, value in _paired(texts, gold)]
    assert references(parquet(tmp_path, pa.array([gold.to_pylist()], pa.list_(gold.type)))) == [
        tuple(texts)
    ]


def _paired(texts: list[str], gold: pa.Array) -> list[tuple[str, pa.Scalar]]:
    left = iter(texts)
    return [(next(left) if value.is_valid else "", value) for value in gold]


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


def test_a_label_of_a_whole_number_may_be_mapped_either_way(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", "question,references,response,label\n?,x,y,1.0\n?,x,y,0\n")
    labels = {"1": "Correct", "0.0": "Wrong"}
    rows = [row.label for _, row in read_examples(path, TableMapping(labels=labels))]
    assert rows == ["Correct", "Wrong"]


def test_metadata_is_json_whatever_the_column_holds(tmp_path: Path) -> None:
    path = parquet(
        tmp_path,
        ["x"],
        day=[date(2024, 1, 2)],
        price=[Decimal("1.50")],
        by=[b"m1"],
        png=[b"\xff"],
        took=[timedelta(seconds=5)],
        key=pa.array([UUID(int=7)], pa.uuid()),
    )
    [(_, request)] = read_table(path, JudgeRequest, TableMapping(columns=COLUMNS))
    assert request.metadata == {
        "day": "2024-01-02",
        "price": "1.50",
        "by": "m1",
        "took": "0:00:05",
        "key": str(UUID(int=7)),
    }
    write_records(tmp_path / "out.jsonl", [request.model_dump()])


def test_a_column_of_parquet_without_any_value_is_a_column(tmp_path: Path) -> None:
    path = parquet(tmp_path, pa.nulls(1), note=pa.nulls(1))
    assert references(path) == [()]
    columns = {**COLUMNS, "metadata.n": "note"}
    assert len(list(read_table(path, JudgeRequest, TableMapping(columns=columns)))) == 1
    columns = {**COLUMNS, "references": "other"}
    with pytest.raises(CustosError, match="no column 'other' for 'references'"):
        list(read_table(path, JudgeRequest, TableMapping(columns=columns)))


MISSING = [None, float("nan"), "", " "]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("value", MISSING)
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
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    mapping = TableMapping(columns={"response": "response"} if mapped else {})
    read = [row for _, row in parse_table(path, LabelledExample, mapping)]
    first, second, third, fourth = read
    assert isinstance(first, LabelledExample)
    assert isinstance(second, LabelledExample)
    assert (first.response, second.response) == ("x", "")
    assert isinstance(third, BadRow)
    assert isinstance(fourth, BadRow)
    assert [bad.error.field for bad in (third, fourth)] == ["references", "label"]  # type: ignore[attr-defined]


def test_a_person_s_word_nan_is_a_text(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", "question,references,response\nBread?,nan,None\n")
    [(_, request)] = read_table(path, JudgeRequest)
    assert (request.references, request.response) == (("nan",), "None")


def test_pairs_and_single_responses_in_one_file(tmp_path: Path) -> None:
    """An empty response is one of the row's own task."""
    rows = [
        {"question": "?", "references": ["r"], "response": None, "response_a": None},
        {"task": "truthful-pair", "question": "?", "response_a": "x", "response_b": None},
        {"task": "truthful-pair", "question": "?", "responses": ["x", float("nan")]},
    ]
    path = save(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    read = [request.responses for _, request in read_table(path, JudgeRequest)]
    assert read == [("",), ("x", ""), ("x", "")]


def test_a_file_without_responses_is_no_file_of_empty_ones(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jsonl", json.dumps({"question": "?", "references": ["r"]}))
    with pytest.raises(CustosError):
        list(read_table(path, JudgeRequest))


def test_numbers_of_labels_are_never_guessed(tmp_path: Path) -> None:
    path = parquet(tmp_path, ["x", "x"], y=[0, 1])
    mapping = TableMapping(columns={**COLUMNS, "label": "y"})
    with pytest.raises(CustosError) as error:
        read_examples(path, mapping)
    assert "--labels '0=?,1=?'" in str(error.value)


@pytest.mark.parametrize("names", [["Correct", "Wrong"], ["good", "bad"]])
def test_names_of_a_file_stand_for_the_numbers_of_its_labels(
    tmp_path: Path, names: list[str]
) -> None:
    cells = {"question": ["?"] * 2, "gold": ["x"] * 2, "said": ["x", "y"], "y": [0, 1]}
    features = datasets.Features(
        {name: datasets.Value("string") for name in ("question", "gold", "said")}
        | {"y": datasets.ClassLabel(names=names)}
    )
    path = tmp_path / "a.parquet"
    datasets.Dataset.from_dict(cells, features=features).to_parquet(path)
    columns = {**COLUMNS, "label": "y"}
    labels = {} if names[0] == "Correct" else {"Good": "Correct", "bad": "Wrong"}
    rows = read_examples(path, TableMapping(columns=columns, labels=labels))
    assert [row.label for _, row in rows] == ["Correct", "Wrong"]


COMPOSED, DECOMPOSED = "réussi", "re\N{COMBINING ACUTE ACCENT}ussi"


@pytest.mark.parametrize(
    ("ours", "theirs"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED.upper())]
)
def test_labels_are_equal_however_unicode_writes_them(
    tmp_path: Path, ours: str, theirs: str
) -> None:
    path = save(tmp_path / "a.csv", f"question,references,response,label\n?,x,y,{theirs}\n")
    [(_, row)] = read_examples(path, TableMapping(labels={ours: "Correct"}))
    assert row.label == "Correct"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize(("ours", "theirs"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_columns_are_equal_however_unicode_writes_them(
    tmp_path: Path, kind: str, ours: str, theirs: str
) -> None:
    text = f"question,gold,{theirs}\n?,x,y\n"
    if kind == "jsonl":
        text = json.dumps({"question": "?", "gold": "x", theirs: "y"})
    path = save(tmp_path / f"a.{kind}", text)
    mapping = TableMapping(columns={"references": "gold", "response": ours})
    [(_, request)] = read_table(path, JudgeRequest, mapping)
    assert (request.response, request.metadata) == ("y", {})
