"""Tables of every kind, written and read."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data_prep.tables.examples import read_examples
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import read_table
from judging.types import JudgeRequest, LabelledExample

KINDS = ("csv", "tsv", "jsonl", "json", "parquet")

SHEET = """\
question,gold,model_answer,human_label,model
Who wrote Emma?,Jane Austen,It is by Jane Austen.,right,m1
What are the primes below 4?,2;3,2,partly,m2
What gas do plants take in?,carbon dioxide; CO2,"Oxygen, I think.",wrong,m1
"""
"""The table of a new user."""

MAP = {"references": "gold", "response": "model_answer", "label": "human_label"}
LABELS = {"right": "Correct", "partly": "Partial", "wrong": "Wrong"}
ROW: dict[str, Any] = {"question": "?", "references": ["x"], "response": "y"}
HEAD = "question,references,response"


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(path: Path, *rows: object) -> Path:
    return save(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def parquet(path: Path, *rows: Mapping[str, Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def save_table(path: Path, rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> Path:
    """Write rows of texts in the kind of file that the ending of the path names."""
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(file, columns, delimiter=delimiter, quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        lines(path, *rows)
    elif path.suffix == ".json":
        save(path, json.dumps(rows))
    else:
        schema = pa.schema([(name, pa.string()) for name in columns])
        pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
    return path


def requests(path: Path, image_folder: Path | None = None, **mapping: Any) -> list[JudgeRequest]:
    """Read the requests of a table with the keys of a mapping."""
    given = TableMapping.model_validate(mapping)
    return [row for _, row in read_table(path, JudgeRequest, given, image_folder=image_folder)]


def examples(path: Path, **mapping: Any) -> list[LabelledExample]:
    """Read the labelled rows of a table with the keys of a mapping."""
    return [row for _, row in read_examples(path, TableMapping.model_validate(mapping))]
