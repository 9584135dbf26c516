"""CHARTOM: pairs of an honest and a misleading chart; FACT and MIND questions about each."""

from benchmarks.chartom.benchmark import Chartom
from benchmarks.chartom.misleadingness import acceptable_interval, hmi
from judging.rules.fact_rules import number_is_right, ranking_of

__all__ = ["Chartom", "acceptable_interval", "hmi", "number_is_right", "ranking_of"]
