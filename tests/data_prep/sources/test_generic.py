import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from data_prep.splits.manifest import load_generic
from judging.errors import CustosError

ROWS: list[dict[str, Any]] = [
    {"id": "a", "task": "t", "question": "Q?", "response": "R", "label": "x", "source": "mine"},
    {"question": "Q?", "responses": ["R", "S"], "label": "y", "images": ["i/1.png"]},
]


def test_rows_in_our_shape(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS), encoding="utf-8")
    first, second = load_generic(path)
    assert (first.id, first.task, first.responses, first.source) == ("a", "t", ("R",), "mine")
    assert (second.id, second.responses, second.source) == ("rows-2", ("R", "S"), "rows")
    assert second.images == (str(tmp_path / "i" / "1.png"),)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS[:1]), path)
    (loaded,) = load_generic(path)
    assert (loaded.id, loaded.label) == ("a", "x")


def test_bad_rows_are_reported_by_number_unless_strict(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [ROWS[0], {"question": "Q?", "response": "R"}, {**ROWS[0], "labl": "x"}, ROWS[1]]
    text = "".join(json.dumps(line) + "\n" for line in lines) + "{broken\n"
    path.write_text(text, encoding="utf-8")
    bad_rows: list[str] = []
    assert [loaded.id for loaded in load_generic(path, bad_rows)] == ["a", "rows-4"]
    messages = [message.partition(f"{path} ")[2] for message in bad_rows]
    assert [message.split(":")[0] for message in messages] == ["row 2", "row 3", "row 5"]
    assert "field 'label'" in messages[0]
    assert "field 'labl'" in messages[1]
    with pytest.raises(CustosError, match="row 2: field 'label'"):
        load_generic(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="no such file"):
        load_generic(tmp_path / "rows.jsonl", [])
