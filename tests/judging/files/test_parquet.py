"""Rows of Arrow tables say what their schema and their number of bits mean."""

import itertools
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.files.parquet import arrow_rows, named_columns
from judging.files.records import read_rows

VERDICT = datasets.ClassLabel(names=["bad", "good"])


def values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    return [row.get("x") for row in arrow_rows(pa.table({"x": array}))]


@pytest.mark.parametrize(
    ("feature", "cells", "wanted"),
    [
        (VERDICT, [1, 0, None, -1], ["good", "bad", None, None]),
        (datasets.List(VERDICT), [[1, 0], [], None], [["good", "bad"], [], None]),
        ({"by": VERDICT, "n": datasets.Value("int8")}, [{"by": 1, "n": 1}],
         [{"by": "good", "n": 1}]),
        ([{"by": VERDICT}], [[{"by": 0}]], [[{"by": "bad"}]]),
        (datasets.Sequence({"by": VERDICT}), [{"by": [0, 1]}], [{"by": ["bad", "good"]}]),
        ({"feature": VERDICT, "names": VERDICT}, [{"feature": 1, "names": 0}],
         [{"feature": "good", "names": "bad"}]),
        (datasets.Value("int64"), [1, 0], [1, 0]),
    ],
)  # fmt: skip
def test_the_names_of_numbers_come_from_the_schema(
    tmp_path: Path, feature: Any, cells: list[Any], wanted: list[Any]
) -> None:
    """In what the hub gives, and in the Parquet file that the library writes of it."""
    features = datasets.Features({"x": feature})
    data = datasets.Dataset.from_dict({"x": cells}, features=features)
    [batch] = data.with_format("arrow").iter(batch_size=10)
    assert [row.get("x") for row in arrow_rows(batch)] == wanted
    data.to_parquet(tmp_path / "a.parquet")
    assert [row.get("x") for _, row in read_rows(tmp_path / "a.parquet")] == wanted
    is_named = feature != datasets.Value("int64")
    assert named_columns(batch.schema) == ({"x"} if is_named else set())


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"info": 1}', b'{"info": {"features": {"x": 7}}}'])
def test_a_schema_that_describes_nothing(text: bytes) -> None:
    table = pa.table({"x": [0, 1]}).replace_schema_metadata({"huggingface": text})
    assert [row["x"] for row in arrow_rows(table)] == [0, 1]


def test_categories_of_pandas_and_dictionaries_are_their_words(tmp_path: Path) -> None:
    words = pd.Categorical(["no", "yes", None, "no"], categories=["yes", "no"])
    pd.DataFrame({"x": words}).to_parquet(tmp_path / "a.parquet")
    assert [row.get("x") for _, row in read_rows(tmp_path / "a.parquet")] == [
        *("no", "yes", None, "no")
    ]
    encoded = pa.array(["no", "yes", "no"]).dictionary_encode()
    assert values(encoded) == ["no", "yes", "no"]


def num_digits(number: float) -> int:
    return len(Decimal(repr(number)).normalize().as_tuple().digits)


@given(number=st.floats(width=32, allow_nan=False))
def test_a_number_of_32_bits_is_the_shortest_that_gives_it(number: float) -> None:
    [value] = values(pa.array([number], pa.float32()))
    assert np.float32(value) == np.float32(number)
    assert num_digits(value) <= num_digits(float(np.float32(number)))


def test_short_numbers_of_32_and_16_bits() -> None:
    numbers = [4.7, 0.1, 1989.0, None]
    assert values(pa.array(numbers, pa.float32())) == numbers
    assert values(pa.array([None if n is None else np.float16(n) for n in [4.7, 0.1, None]])) == [
        *(4.7, 0.1, None)
    ]
    assert values(pa.array([[4.7, None], None], pa.list_(pa.float32()))) == [[4.7, None], None]
    struct = pa.struct({"a": pa.large_list(pa.float32())})
    assert values(pa.array([{"a": [0.1]}], struct)) == [{"a": [0.1]}]
    assert values(pa.array([4.7], pa.float32()).dictionary_encode()) == [4.7]


MOST_BYTES = 600_000_000


@pytest.fixture(autouse=True)
def pool() -> Iterator[pa.MemoryPool]:
    """A pool of memory of Arrow that counts from nothing."""
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    yield pool
    pa.set_memory_pool(usual)


def stored_once(text: str, times: int) -> pa.Array:
    """A column of one text in all rows, which a file holds once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([text]))


def write(path: Path, column: pa.Array) -> None:
    pq.write_table(pa.table({"x": column}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 60_000
    pa.default_memory_pool().release_unused()


def write_differences(path: Path, column: pa.Array, encoding: str = "DELTA_BYTE_ARRAY") -> None:
    """Write texts as what differs from the one before, as Java does in the format's version 2."""
    name = "x.list.element" if pa.types.is_list(column.type) else "x"
    options = {"use_dictionary": False, "column_encoding": {name: encoding}}
    table = pa.table({"x": column})
    pq.write_table(table, path, compression="zstd", row_group_size=len(column), **options)
    pa.default_memory_pool().release_unused()


def test_long_texts_in_many_rows_are_read_row_by_row(tmp_path: Path, pool: pa.MemoryPool) -> None:
    path, text = tmp_path / "a.parquet", "a" * 1_000_000
    write(path, stored_once(text, 100_000))  # 100 GB
    rows = list(itertools.islice(read_rows(path), 200))
    assert [number for number, _ in rows] == list(range(1, 201))
    assert all(row["x"] == text for _, row in rows)
    texts = stored_once("a" * 100_000, 500_000)
    write(path, pa.ListArray.from_arrays(list(range(0, 500_001, 5)), texts))  # 50 GB
    [(_, row)] = itertools.islice(read_rows(path), 1)
    assert row["x"] == ["a" * 100_000] * 5
    assert (pool.max_memory() or 0) < MOST_BYTES


@pytest.mark.parametrize("kind", ["a list", "a list of long texts", "a text"])
def test_one_row_that_stands_for_gigabytes_is_refused(
    tmp_path: Path, kind: str, pool: pa.MemoryPool
) -> None:
    path = tmp_path / "a.parquet"
    if kind == "a text":
        column = pa.array(["a" * 100_000_000])
        pq.write_table(pa.table({"x": column}), path, compression="brotli", use_dictionary=False)
    elif kind == "a list":
        values = pa.nulls(70_000_000, pa.int8())
        write(path, pa.ListArray.from_arrays([0, len(values)], values))
    else:
        write(path, pa.ListArray.from_arrays([0, 100_000], stored_once("a" * 100_000, 100_000)))
    before = pool.max_memory() or 0
    with pytest.raises(CustosError, match="column 'x"):
        list(read_rows(path))
    assert (pool.max_memory() or 0) - before < MOST_BYTES


def test_honest_tables_are_read_whole(tmp_path: Path) -> None:
    """Of every kind of column, also with more texts than a dictionary holds, in several groups."""
    path, number = tmp_path / "a.parquet", 12_000
    texts = [f"{row:06d}{'x' * 100}" for row in range(number)]
    pairs = pa.map_(pa.string(), pa.string())
    table = pa.table(
        {
            "text": texts,
            "label": ["Correct", None] * (number // 2),
            "list": [["same", text] for text in texts],
            "objects": [[{"k": text, "n": [1]}] for text in texts],
            "map": pa.array([[("k", text)] for text in texts], pairs),
            "bytes": [text.encode() for text in texts],
        }
    )
    pq.write_table(table, path, row_group_size=11_000)
    wanted = [
        {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    ]
    assert [row for _, row in read_rows(path)] == wanted


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_stored_as_differences_are_read(tmp_path: Path, encoding: str) -> None:
    path, texts = tmp_path / "a.parquet", [f"{row // 3}a" for row in range(300)]
    for values in (texts, [[text, "b"] for text in texts]):
        write_differences(path, pa.array(values), encoding)
        assert [row["x"] for _, row in read_rows(path)] == values


def test_long_texts_stored_as_differences_stay_within_bounds(tmp_path: Path) -> None:
    """Of 700 MB, one by one; all in one row are refused."""
    path, text = tmp_path / "a.parquet", "a" * 1_000_000
    texts = stored_once(text, 700).dictionary_decode()
    for column in (texts, pa.ListArray.from_arrays([0, 700], texts)):
        write_differences(path, column)
        assert path.stat().st_size < 60_000
        pool = pa.proxy_memory_pool(pa.default_memory_pool())
        pa.set_memory_pool(pool)  # counts what reading takes
        if column is texts:
            assert all(row["x"] == text for _, row in read_rows(path))
        else:
            with pytest.raises(CustosError, match="column 'x"):
                list(read_rows(path))
        assert (pool.max_memory() or 0) < 100_000_000


def test_an_empty_table_and_dates_that_no_one_has(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": pa.array([], pa.string())}), path)
    assert list(read_rows(path)) == []
    pq.write_table(pa.table({"x": pa.array([2**30], pa.date32())}), path)
    with pytest.raises(CustosError, match="cannot be decoded"):
        list(read_rows(path))
