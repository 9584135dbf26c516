"""The command, and spreadsheets as people save them."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.main import app


def custos(*words: object) -> Any:
    """Run a command; an error that it does not report itself is raised."""
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)


def succeed(*words: object) -> Any:
    """Run a command that must end well."""
    result = custos(*words)
    assert result.exit_code == 0, result.output
    return result


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
