"""Answers of reasoning models to questions with one right answer."""
