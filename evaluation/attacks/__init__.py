"""Attacks on a judge: responses that are wrong and made to be called Correct, on a user's own items."""
