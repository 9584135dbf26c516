"""Pairs of responses to questions about pictures, with critiques of what decides."""
