"""Calls that come before the judges are loaded."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from serve.errors import RETRY_AFTER_S, ApiError
from serve.queue.service import Service

HEALTH_ROUTES = ("/health", "/health/live", "/health/ready")
"""Answered at any time and without an access key."""


class RequireJudges:
    """Middleware that answers 503 to everything but health while there are no judges."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one call."""
        is_open = scope["type"] != "http" or scope["path"] in HEALTH_ROUTES
        if not (is_open or self.service.judges):
            refusal = ApiError(503, "the service is starting", retry_after=RETRY_AFTER_S)
            return await refusal.response()(scope, receive, send)
        await self.app(scope, receive, send)
