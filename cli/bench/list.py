"""``custos bench list``: the benchmarks there are."""

from __future__ import annotations

from rich.table import Table

from cli.shared.screen import wide_console


def list_benchmarks() -> None:
    """Print the benchmarks with their judge tasks and published tables.

    Example: custos bench list
    """
    from benchmarks.framework.base import benchmark_names, get_benchmark

    table = Table("name", "what it measures", "judge tasks", "published")
    for name in benchmark_names():
        benchmark = get_benchmark(name)
        sources = "; ".join(published.source for published in benchmark.published)
        tasks = ", ".join(benchmark.tasks) or "none (rules)"
        table.add_row(name, benchmark.summary, tasks, sources)
    wide_console().print(table)
