"""Synthetic quick-score data: invented worlds, and responses whose truth is known."""

from data_prep.synthetic.factory import generate

__all__ = ["generate"]
