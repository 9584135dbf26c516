"""Judges inside the evaluation tools of others: a module each, which imports its tool alone."""
