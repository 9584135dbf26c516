"""Raw data to labelled examples: sources, synthetic data, constructions, splits."""
