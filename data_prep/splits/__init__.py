"""Filters, class balance, and splits that share no question."""
