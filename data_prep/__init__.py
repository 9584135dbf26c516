"""Raw data to labelled examples: sources, synthetic data and its audits, constructions, splits."""
