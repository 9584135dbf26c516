"""Rankings of models by the verdicts on their answers, and their agreement."""
