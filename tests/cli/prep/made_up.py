"""Rows to prepare, and the command."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.main import prep_app as app
from judging.files.records import read_records
from judging.types import LabelledExample

SPLITS = ("train", "val", "cal", "test")


def run(*arguments: object) -> Any:
    """Run the sub-app as ``cli/main.py`` does: mistakes of the user come out as ``CustosError``."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def read(out: Path, split: str) -> list[LabelledExample]:
    return [row for _, row in read_records(out / f"{split}.jsonl", LabelledExample)]


def read_splits(out: Path) -> dict[str, list[LabelledExample]]:
    """The rows of every split; no two splits share a group."""
    splits = {split: read(out, split) for split in SPLITS}
    groups = [{row.group for row in rows} for rows in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups))
    return splits


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def own_rows(number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": str(i),
            "question": f"What is item {i}?",
            "references": ["thing"],
            "response": "B" if i % 10 == 0 else "It is a thing.",
            "label": "Wrong" if i % 4 == 0 else "Correct",
        }
        for i in range(number)
    ]


def evouna_rows(number: int) -> list[dict[str, Any]]:
    """Questions with the answers of five systems, which are wrong to every fourth question."""
    names = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
    return [
        {
            **{"question": f"what is item {i}", "golden_answer": "thing", "improper": False},
            **{f"answer_{name}": "a thing" for name in names},
            **{f"judge_{name}": i % 4 != 0 for name in names},
        }
        for i in range(number)
    ]
