"""Files of verdicts that an earlier run wrote, told from other files: only those are replaced."""

from __future__ import annotations

import json
from pathlib import Path

from cli.shared.verdicts.tables import has_verdict_columns, table_columns
from judging.errors import CustosError, system_errors_at

_KEYS = {"row", "status"}
"""Keys of every line that ``custos grade`` writes."""


def check_own_verdicts(option: str, output: Path) -> None:
    """Refuse to replace a file that ``custos grade`` did not write.

    Args:
        option: Option that names the file.
        output: File that is about to be written; an empty or missing one may be.

    Raises:
        CustosError: If something else lies there.
    """
    if not output.exists() or (output.is_file() and not output.stat().st_size):
        return
    if not output.is_file() or not _holds_verdicts(output):
        raise CustosError(
            f"{option} '{output}': exists and holds no verdicts of custos grade; name a new file"
        )


def _holds_verdicts(path: Path) -> bool:
    """Return whether a file begins as a file of verdicts does."""
    try:
        if path.suffix == ".jsonl":
            with system_errors_at(path), path.open("rb") as file:
                line = json.loads(file.readline())
            return isinstance(line, dict) and line.keys() >= _KEYS
        return has_verdict_columns(table_columns(path))
    except (CustosError, ValueError):  # neither JSON, nor a table, nor Parquet
        return False
