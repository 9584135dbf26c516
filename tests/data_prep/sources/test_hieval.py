import json
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets
import pytest
from PIL import Image

from data_prep.sources.hieval import COLUMNS, load_hieval
from data_prep.tables.mapping import TableMapping
from data_prep.tables.source import HubOptions
from judging.errors import CustosError
from tests.data_prep.tables.made_up import lines, parquet, save

ROW = {"question": "Which are prime?", "answer": "2; 3", "response": "2", "label": "partial"}


def write(path: Path, rows: list[Any]) -> Path:
    if path.suffix == ".parquet":
        return parquet(path, *rows)
    if path.suffix == ".json":
        return save(path, json.dumps(rows))
    return lines(path, *rows)


def png() -> bytes:
    content = BytesIO()
    Image.new("RGB", (3, 2), "red").save(content, "png")
    return content.getvalue()


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_default_columns(tmp_path: Path, suffix: str) -> None:
    (loaded,) = load_hieval(write(tmp_path / f"qs{suffix}", [ROW]))
    assert loaded.model_dump(exclude_defaults=True) == {
        "id": "qs-1",
        "question": "Which are prime?",
        "references": ("2", "3"),
        "responses": ("2",),
        "label": "Partial",
        "source": "qs",
    }
    assert (loaded.task, loaded.variant, loaded.reference_mode) == ("hieval-qs", "plain", "all")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_every_column_under_another_name(tmp_path: Path, suffix: str) -> None:
    row = {
        "uid": 17,
        "q": "Which are prime?",
        "gold": ["2", "3"],
        "text": "2 and 3",
        "grade": 2,
        "pic": "images/a.png",
        "topic": "primes",
        "model": "m1",
        "domain": "maths",
        "unused": "x",
    }
    columns = {
        **{"question": "q", "references": "gold", "response": "text", "label": "grade"},
        **{"id": "uid", "group": "topic", "images": "pic"},
    }
    labels = {"2": "Correct", "1": "Partial", "0": "Wrong"}
    mapping = TableMapping(columns=columns, labels=labels, variant="tolerance")
    path = write(tmp_path / f"raw{suffix}", [row])
    (loaded,) = load_hieval(path, mapping, {"answerer": "model", "domain": "domain"})
    assert loaded.model_dump(exclude_defaults=True) == {
        "id": "17",
        "variant": "tolerance",
        "question": "Which are prime?",
        "references": ("2", "3"),
        "responses": ("2 and 3",),
        "images": (str(tmp_path / "images" / "a.png"),),
        "metadata": {"answerer": "m1", "domain": "maths"},
        "label": "Correct",
        "group": "primes",
        "source": "raw",
    }


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({**ROW, "label": "maybe"}, "field 'label': 'maybe' is not one of .*; add --label 'maybe="),
        ({**ROW, "answer": None}, "field 'references'"),
        ({**ROW, "response": {"a": 1}}, "field 'response'"),
    ],
)
def test_bad_rows(tmp_path: Path, row: Any, field: str) -> None:
    path = write(tmp_path / "qs.jsonl", [ROW, row, ROW])
    with pytest.raises(CustosError, match=f"row 2: {field}"):
        load_hieval(path)
    path.write_text(path.read_text() + "{oops\n", encoding="utf-8")
    bad_rows: list[str] = []
    assert [loaded.id for loaded in load_hieval(path, bad_rows=bad_rows)] == ["qs-1", "qs-3"]
    assert len(bad_rows) == 2


def test_error_types_make_error_analysis_examples(tmp_path: Path) -> None:
    rows = [
        {**ROW, "type": "reasoning error"},
        {**ROW, "label": "Correct", "type": None},
        {**ROW, "label": "Correct", "type": "Other"},
        {**ROW, "label": "Wrong", "type": ""},
        {**ROW, "label": "Wrong", "type": "Typo"},
    ]
    bad_rows: list[str] = []
    loaded = load_hieval(
        write(tmp_path / "ea.jsonl", rows),
        TableMapping(columns={**COLUMNS, "error_type": "type"}),
        bad_rows=bad_rows,
    )
    assert [(e.task, e.label, e.error_type) for e in loaded] == [
        ("hieval-ea", "Partial; Reasoning Error", "Reasoning Error"),
        ("hieval-ea", "Correct", None),
    ]
    assert [message.partition("row ")[2][0] for message in bad_rows] == ["3", "4", "5"]


def test_hub_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = datasets.Dataset.from_list(
        [{**ROW, "image": {"bytes": png(), "path": None}, "domain": None}, {**ROW, "domain": "d"}],
        features=datasets.Features(
            {
                **{name: datasets.Value("string") for name in [*ROW, "domain"]},
                "image": datasets.Image(),
            }
        ),
    )
    calls: list[Any] = []

    def load_dataset(*args: Any, **kwargs: Any) -> datasets.Dataset:
        calls.append((args, kwargs))
        return table

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    first, second = load_hieval(
        "lab/hieval-qs",
        TableMapping(columns={**COLUMNS, "images": "image"}),
        {"domain": "domain"},
        hub=HubOptions("validation", "en", "abc123"),
        image_folder=tmp_path,
    )
    assert calls == [(("lab/hieval-qs", "en"), {"split": "validation", "revision": "abc123"})]
    assert (first.id, first.source, first.references) == ("hieval-qs-1", "hieval-qs", ("2", "3"))
    assert Path(first.images[0]).read_bytes() == png()
    assert (first.metadata, first.images == ()) == ({}, False)
    assert (second.metadata, second.images) == ({"domain": "d"}, ())


def test_parts_of_nested_cells(tmp_path: Path) -> None:
    path = write(tmp_path / "qs.jsonl", [{**ROW, "q": {"text": "Which?"}, "by": {"name": "m1"}}])
    mapping = TableMapping(columns={**COLUMNS, "question": "q.text"})
    (loaded,) = load_hieval(path, mapping, {"answerer": "by.name"})
    assert (loaded.question, loaded.metadata) == ("Which?", {"answerer": "m1"})
