"""Judges over HTTP."""
