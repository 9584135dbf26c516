"""``custos bench``: the verbs that answer, grade and tabulate benchmarks."""
