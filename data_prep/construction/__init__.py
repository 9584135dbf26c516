"""Building a benchmark or a training set with models and people."""
