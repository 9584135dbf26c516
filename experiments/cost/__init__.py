"""Experiments on time and memory."""
