"""ChartHal: twelve kinds of chart questions, most of which the chart cannot answer."""

from benchmarks.charthal.benchmark import ChartHal

__all__ = ["ChartHal"]
