"""Answers that are read without a model: options, numbers, orders, references in a text."""
