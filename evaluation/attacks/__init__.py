"""Attacks: wrong responses that are made to be called Correct, on a user's own items."""
