"""Errors in the form that OpenAI's clients expect: a real status, and a body that they can show."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from serve.errors import ApiError

RETRY_STATUSES = (408, 409, 429, 503, 504)
"""Statuses after which trying again may help. A request that breaks the judge, or on which it has
no verdict, would be graded again for nothing: OpenAI's clients try three times."""
CODES = {404: "model_not_found", 429: "overloaded", 503: "unavailable", 504: "deadline_exceeded"}


def error_body(error: ApiError) -> dict[str, Any]:
    """Return ``{"error": {"message", "type", "param", "code"}}``."""
    error_type = "invalid_request_error"
    if error.status >= 500:
        error_type = "server_error"
    elif error.status == 429:
        error_type = "rate_limit_error"
    return {
        "error": {
            "message": error.message,
            "type": error_type,
            "param": error.field,
            "code": CODES.get(error.status),
        }
    }


def error_response(error: ApiError) -> JSONResponse:
    """Return the answer; ``x-should-retry: false`` marks what would fail again."""
    response = JSONResponse(error_body(error), status_code=error.status, headers=error.headers)
    if error.status not in RETRY_STATUSES:
        response.headers["x-should-retry"] = "false"
    return response


class OpenAIRoute(APIRoute):
    """A route whose errors have OpenAI's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, with its errors turned into answers."""
        handle = super().get_route_handler()

        async def handle_with_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except ApiError as error:
                return error_response(error)

        return handle_with_errors
