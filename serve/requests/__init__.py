"""Requests to grade: their routes, and the checks before they are queued."""

from serve.requests.routes import routes

__all__ = ["routes"]
