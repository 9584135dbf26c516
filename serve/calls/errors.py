"""Errors that a client gets: all with one form of body, and without internals."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from judging.types import shortened

RETRY_AFTER_S = 5
"""When to try again while the service starts or drains, while a model's server fails, and while too
many bodies are in memory, as each try sends its body again."""
MAX_MESSAGE_CHARS = 1000
MAX_FIELD_CHARS = 200
"""An error may name what the client sent, which may be a name of megabytes."""
TYPES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    415: "unsupported_media_type",
    429: "overloaded",
    503: "unavailable",
    504: "deadline_exceeded",
}
NO_ROUTE = (
    "there is no such route; GET /openapi.json describes all routes. The base URL of chat clients "
    "ends with /v1, that of others does not"
)


class ErrorDetail(BaseModel):
    """One error."""

    type: str
    message: str
    field: str | None
    """Dotted path of the wrong field, or the name of a header."""


class ErrorBody(BaseModel):
    """Body of every answer that is not a success."""

    error: ErrorDetail


class ApiError(Exception):
    """An answer that is not a success.

    ``field`` is the dotted path of the wrong field in the body, or the name of a header. The same
    call may succeed after ``retry_after`` seconds. ``closes`` closes the connection, as the rest of
    a body that is wrong or late is never read.
    """

    def __init__(
        self,
        status: int,
        message: str,
        field: str | None = None,
        *,
        retry_after: int | None = None,
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = shortened(message, MAX_MESSAGE_CHARS)
        self.field = field and shortened(field, MAX_FIELD_CHARS)
        self.headers = {"Retry-After": str(retry_after)} if retry_after else {}
        if closes or status in (400, 408, 413):
            self.headers["Connection"] = "close"

    def body(self) -> dict[str, Any]:
        """Build an :class:`ErrorBody` as JSON."""
        default = "internal" if self.status >= 500 else "invalid_request"
        error_type = TYPES.get(self.status, default)
        return {"error": {"type": error_type, "message": self.message, "field": self.field}}

    def response(self) -> JSONResponse:
        """Build the whole answer."""
        return JSONResponse(self.body(), status_code=self.status, headers=self.headers)


def add_error_handling(app: FastAPI) -> None:
    """Give every error of an app the same form."""

    @app.exception_handler(ApiError)
    async def answer_error(_: Request, error: ApiError) -> JSONResponse:
        return error.response()

    @app.exception_handler(HTTPException)
    async def answer_routing_error(_: Request, error: HTTPException) -> JSONResponse:
        headers = error.headers or {}
        message = f"this route takes {headers['Allow']}" if "Allow" in headers else error.detail
        response = ApiError(
            error.status_code, NO_ROUTE if error.status_code == 404 else message
        ).response()
        response.headers.update(headers)
        return response
