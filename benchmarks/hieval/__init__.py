"""HiEval: judges measured on responses that people scored."""

from benchmarks.hieval.benchmark import HiEval

__all__ = ["HiEval"]
