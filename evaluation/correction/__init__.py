"""Benchmark scores corrected by a small sample of people's labels."""
