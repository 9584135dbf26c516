"""Pages for people: a playground, the judges with what was measured of them, the live queue."""

from serve.pages.routes import routes

__all__ = ["routes"]
