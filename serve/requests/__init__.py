"""Requests to grade: their routes, and the checks before they are queued."""
