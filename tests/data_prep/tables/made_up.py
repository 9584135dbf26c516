"""One table as files of every kind."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
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
        save(path, "".join(f"{json.dumps(row)}\n" for row in rows))
    elif path.suffix == ".json":
        save(path, json.dumps(rows))
    else:
        schema = pa.schema([(name, pa.string()) for name in columns])
        pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
    return path
