"""The verbs that train judges, and that say what a training run will need."""
