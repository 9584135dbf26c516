"""Sheets for people: written as CSV or as an HTML page, read back, and brought together."""
