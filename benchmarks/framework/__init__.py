"""Parts that all benchmarks share: files, responses, grading, tables and reports."""
