"""Pages for people: a playground, the judges with their measured cards, the live queue."""

from serve.pages.routes import routes

__all__ = ["routes"]
