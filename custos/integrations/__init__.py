"""Judges inside the evaluation tools of others: one module a tool, which imports it and no other."""
