"""Benchmarks: items, requests that grade responses to them, and the tables of their papers."""
