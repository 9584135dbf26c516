"""Tables as the text of a paper prints them: cells apart by tabs, above their caption."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.framework.base import Figure, PaperRow, PublishedTable

COST = re.compile(r"(\$[\d.]+)\(Q\)\+(\$[\d.]+)\(A\)")


def printed_lines(paper: Path, caption: str) -> list[list[str]]:
    """Return the cells of the lines above a caption, without their marks of style."""
    lines = paper.read_text(encoding="utf-8").splitlines()
    [end] = [number for number, line in enumerate(lines) if line.startswith(caption)]
    while not lines[end - 1].strip():
        end -= 1
    start = end
    while lines[start - 1].strip():
        start -= 1
    return [
        [re.sub(r"</?[bi]>|\\|\*\*", "", cell).strip() for cell in line.split("\t")]
        for line in lines[start:end]
    ]


def printed_rows(paper: Path, caption: str) -> dict[str, PaperRow]:
    """Return the rows of a table that hold figures, by their first cell."""
    rows = {first: tuple(map(figure, cells)) for first, *cells in printed_lines(paper, caption)}
    return {name: row for name, row in rows.items() if any(isinstance(cell, float) for cell in row)}


def figure(cell: str) -> Figure:
    """Read a cell: a number, a cost, a word, or a dash for none."""
    if cell in ("", "-"):
        return None
    if cost := COST.fullmatch(cell):
        return f"{cost[1]} + {cost[2]}"
    try:
        return float(cell.replace(",", "").removesuffix("%"))
    except ValueError:
        return cell.lower()


def named(tables: tuple[PublishedTable, ...], start: str) -> PublishedTable:
    """Return the published table whose source starts with a text."""
    [table] = [table for table in tables if table.source.startswith(start)]
    return table
