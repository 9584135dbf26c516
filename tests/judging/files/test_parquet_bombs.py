"""Small Parquet files that stand for much: rows are read within bounds, or the file is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judging.errors import CustosError
from judging.files.records import read_rows

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


def test_a_long_text_in_many_rows_is_read_row_by_row(tmp_path: Path, pool: pa.MemoryPool) -> None:
    path, text = tmp_path / "a.parquet", "a" * 1_000_000
    write(path, stored_once(text, 100_000))  # 100 GB
    rows = list(itertools.islice(read_rows(path), 200))
    assert [number for number, _ in rows] == list(range(1, 201))
    assert all(row["x"] == text for _, row in rows)
    assert (pool.max_memory() or 0) < MOST_BYTES


def test_so_are_lists_of_long_texts(tmp_path: Path, pool: pa.MemoryPool) -> None:
    path, texts = tmp_path / "a.parquet", stored_once("a" * 100_000, 500_000)
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
    path, number = tmp_path / "a.parquet", 40_000
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
    pq.write_table(table, path, row_group_size=15_000)
    wanted = [
        {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    ]
    assert [row for _, row in read_rows(path)] == wanted


def write_differences(path: Path, column: pa.Array, encoding: str = "DELTA_BYTE_ARRAY") -> None:
    """Write texts as what differs from the one before, as Java does in the format's version 2."""
    name = "x.list.element" if pa.types.is_list(column.type) else "x"
    pq.write_table(
        pa.table({"x": column}),
        path,
        compression="zstd",
        use_dictionary=False,
        column_encoding={name: encoding},
        row_group_size=len(column),
    )
    pa.default_memory_pool().release_unused()


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
