"""Plain columns of text: readable on a terminal, in a file and through a pipe."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one line per row, its cells padded to the width of their columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
