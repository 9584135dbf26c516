"""Errors as OpenAI's clients expect them: a real status, and a body they can show."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from serve.errors import ApiError

PASSING = (408, 409, 429)
"""Statuses below 500 after which trying again may help."""
CODES = {404: "model_not_found", 429: "overloaded", 503: "unavailable", 504: "deadline_exceeded"}


def error_body(error: ApiError) -> dict[str, Any]:
    """``{"error": {"message", "type", "param", "code"}}``."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": error.message,
            "type": "rate_limit_error" if error.status == 429 else kind,
            "param": error.field,
            "code": CODES.get(error.status),
        }
    }


def error_response(error: ApiError) -> JSONResponse:
    """The answer, with ``x-should-retry: false`` where the same request would fail again."""
    response = JSONResponse(error_body(error), status_code=error.status, headers=error.headers)
    if error.status < 500 and error.status not in PASSING:
        response.headers["x-should-retry"] = "false"
    return response


class OpenAIRoute(APIRoute):
    """A route whose errors have OpenAI's shape."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, with its errors answered."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except ApiError as error:
                return error_response(error)

        return answered
