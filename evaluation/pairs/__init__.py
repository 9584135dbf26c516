"""Verdicts on pairs of responses, compared with people's choices."""
