"""Grading of many files, the shards of a table, by a pool of workers."""
