"""Requests to grade: their routes, and the checks before they are queued."""

from serve.requests.parse import routes

__all__ = ["routes"]
