"""Hard responses for quick-score judges: one wording, right or wrong by what it claims."""
