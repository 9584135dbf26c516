"""Experiments on what a method is worth."""
