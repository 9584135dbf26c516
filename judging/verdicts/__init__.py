"""From log-probabilities of labels to calibrated verdicts."""
