"""Clients of OpenAI-compatible servers and of our own service."""
