"""CHARTOM: pairs of an honest and a misleading chart; FACT and MIND questions about each."""

from benchmarks.chartom.benchmark import Chartom

__all__ = ["Chartom"]
