"""Readers of published data sets and of files in our own format."""
