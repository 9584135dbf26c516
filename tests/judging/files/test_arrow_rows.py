"""Rows of Arrow tables say what their schema and their number of bits mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.files.arrow_rows import arrow_rows, named_columns
from judging.files.records import read_rows

VERDICT = datasets.ClassLabel(names=["bad", "good"])


def values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    return [row.get("x") for row in arrow_rows(pa.table({"x": array}))]


def of_datasets(cells: Sequence[Any], feature: Any) -> datasets.Dataset:
    return datasets.Dataset.from_dict({"x": cells}, features=datasets.Features({"x": feature}))


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
    data = of_datasets(cells, feature)
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


@given(number=st.floats(width=32, allow_nan=False))
def test_a_number_of_32_bits_is_the_shortest_that_gives_it(number: float) -> None:
    [value] = values(pa.array([number], pa.float32()))
    assert np.float32(value) == np.float32(number)
    assert len(repr(value)) <= len(repr(float(np.float32(number))))


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
