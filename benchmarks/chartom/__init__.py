"""CHARTOM: pairs of an honest and a misleading chart; FACT and MIND questions about each."""

from benchmarks.chartom.benchmark import Chartom
from benchmarks.chartom.fact_rules import number_is_right, ranking_of
from benchmarks.chartom.misleadingness import acceptable_interval, hmi

__all__ = ["Chartom", "acceptable_interval", "hmi", "number_is_right", "ranking_of"]
