"""Synthetic quick-score data: invented worlds, and responses whose truth is known."""

from data_prep.synthetic.text.generate import WorldSet, generate

__all__ = ["WorldSet", "generate"]
