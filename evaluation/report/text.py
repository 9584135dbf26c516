"""Figures as text, tables of Markdown, and the templates that are filled with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.log_lines import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def markdown_templates(folder: Path) -> Environment:
    """Build the environment of a folder's Markdown templates.

    Of its filters, ``intervals`` and ``numbers`` make a cell for each of the named figures, and
    ``header`` and ``row`` lines of a table.
    """
    # This is Markdown, and ``row`` escapes what would break a table.
    environment = templates([folder], autoescape=False, keep_trailing_newline=True)
    environment.filters |= {
        "chance": chance_text,
        "intervals": lambda figures, names: [with_interval(figures[name]) for name in names],
        "numbers": lambda figures, names: [number(figures.get(name)) for name in names],
        "header": table_header,
        "row": table_row,
        "prefix": lambda text, prefix: f"{prefix}{text}",
    }
    return environment


def templates(folders: Sequence[Path], **options: Any) -> Environment:
    """Build the environment of templates, with filters for figures and options of jinja2."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options |= {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(folders), **options)
    environment.filters |= {"number": number, "with_interval": with_interval, "p_value": p_value}
    return environment


def number(value: float | None, digits: int = 3) -> str:
    """Write a figure as text, or a dash where it does not exist."""
    return "-" if value is None else f"{value:.{digits}f}"


def with_interval(measured: Mapping[str, Any] | None) -> str:
    """Write ``0.914 [0.899, 0.928]``; without brackets where there is no interval.

    A calibration error has no interval; beside it stands what chance alone gives:
    ``0.033 (chance 0.030, up to 0.042)``.
    """
    if measured is None or measured["value"] is None:
        return "-"
    if chance := measured.get("chance"):
        return f"{number(measured['value'])} (chance {chance_text(chance)})"
    if measured["low"] is None and measured["high"] is None:
        return number(measured["value"])
    return f"{number(measured['value'])} [{number(measured['low'])}, {number(measured['high'])}]"


def chance_text(chance: Mapping[str, Any]) -> str:
    """Write the error that a calibrated judge has by chance: its mean and its 95th percentile."""
    return f"{number(chance['mean'])}, up to {number(chance['high'])}"


def p_value(p: float) -> str:
    """Write a p-value as text, with a floor below which digits mean nothing."""
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out a Markdown table: first column to the left, the others to the right."""
    return "\n".join([table_header(header), *map(table_row, rows)])


def table_header(names: Sequence[str]) -> str:
    """Write the two lines that begin a Markdown table: names of the columns, and alignment."""
    return "\n".join([table_row(names), table_row([":--", *["--:"] * (len(names) - 1)])])


def table_row(values: Iterable[object]) -> str:
    r"""Write a row of a Markdown table.

    What would end a cell, or begin an HTML tag, a link or a picture, is escaped, as a viewer would
    fetch a picture that a response names. Control characters become escapes such as ``\x1b``.
    """
    cells = []
    for value in values:
        text = one_line(re.sub(r"[\r\n]+", " ", str(value)))
        text = re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", text).replace("](", "]&#40;")
        # Begins where a run does: else each run would be read again from each of its places.
        cells.append(re.sub(r"(?<!\\)(\\*)\|", r"\1\1\|", text))
    return f"| {' | '.join(cells)} |"
