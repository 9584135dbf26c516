"""Names as people write them: of judges, of labels, and of the responses of a pair."""
