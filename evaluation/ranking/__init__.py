"""Models ranked by the verdicts on their answers."""
