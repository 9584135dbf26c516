"""TruthfulVQA: four-option questions whose wording misleads more from level to level."""

from benchmarks.truthfulvqa.benchmark import TruthfulVQA

__all__ = ["TruthfulVQA"]
