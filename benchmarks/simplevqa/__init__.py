"""SimpleVQA: short factual questions about pictures, in Chinese and English."""

from benchmarks.simplevqa.benchmark import SimpleVQA

__all__ = ["SimpleVQA"]
