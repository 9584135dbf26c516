"""Rows of a run: their index, what a judge learns of them, and the processes that encode them."""
