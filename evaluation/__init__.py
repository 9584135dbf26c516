"""Verdicts against people: metrics with intervals, baselines, reports, comparisons."""
