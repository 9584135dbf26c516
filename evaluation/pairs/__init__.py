"""Verdicts on pairs of responses, compared with the choices of people."""
