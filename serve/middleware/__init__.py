"""Checks and headers around every route."""
