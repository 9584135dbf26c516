"""The report on one graded file as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.report.report import interval_cells, model_sections, paper_tables
from evaluation.report.markdown import markdown_templates

TEMPLATES = Path(__file__).parent / "templates"


def render_markdown(benchmark: Benchmark, table: Mapping[str, Any], source: str) -> str:
    """Lay out a table, what it rests on and the published tables.

    Args:
        benchmark: The benchmark that the items belong to.
        table: Result of ``build_table``.
        source: Name of the graded file.
    """
    environment = markdown_templates(TEMPLATES)
    environment.filters["cells"] = lambda row: [row["name"], *interval_cells(row)]
    return environment.get_template("report.md").render(
        benchmark=benchmark,
        source=source,
        models=model_sections(table),
        papers=paper_tables(benchmark, table),
    )
