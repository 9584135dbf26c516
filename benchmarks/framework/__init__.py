"""The parts that every benchmark shares: items, responses, grading, tables and reports."""
