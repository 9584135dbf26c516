"""The report on one graded file as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.report.report import (
    figure_text,
    interval_cells,
    model_name,
    paper_tables,
    sections,
    summary_lines,
)
from evaluation.report.markdown import markdown_templates

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def render_markdown(benchmark: Benchmark, table: Mapping[str, Any], source: str) -> str:
    """Lay out a table, what it rests on and the published tables.

    Args:
        benchmark: The benchmark that the items belong to.
        table: Result of ``build_table``.
        source: Name of the graded file.
    """
    return (
        report_templates()
        .get_template("report.md")
        .render(
            benchmark=benchmark,
            source=source,
            summary=summary_lines(table),
            sections=sections(table["intervals"]),
            papers=paper_tables(benchmark, {model_name(table): table}),
        )
    )


def report_templates() -> Environment:
    """Return the environment of the Markdown templates, with filters for figures of tables."""
    environment = markdown_templates(TEMPLATES)
    environment.filters["cells"] = lambda row: [row["name"], *interval_cells(row)]
    environment.filters["figure"] = figure_text
    return environment
