"""Synthetic quick-score data: invented worlds, and responses whose truth is known."""
