"""Evaluation tools of others, each in an environment of its own, against a running service."""
