"""Layers that every call passes before its route is reached, and every answer after it."""
