"""Benchmarks: items to requests to the paper's table."""
