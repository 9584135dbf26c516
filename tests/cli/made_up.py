"""The command, JSON Lines, and spreadsheets as people save them."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from cli.main import app


def custos(*words: object) -> Result:
    """Run a command; an error that it does not report itself is raised."""
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def succeed(*words: object) -> Result:
    """Run a command that must end well."""
    result = custos(*words)
    assert result.exit_code == 0, result.output
    return result


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """Write rows as JSON Lines; a text is a line as it is."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    rows = list(rows)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
