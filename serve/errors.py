"""What a client is told when something goes wrong: one body shape, never internals."""

from __future__ import annotations

import logging
import re
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger("custos.serve")

REQUEST_ID_HEADER = "X-Request-ID"
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
TYPES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 429: "overloaded"}


class ApiError(Exception):
    """An answer other than 200.

    Args:
        status: HTTP status.
        message: What is wrong, for the client to read.
        field: Path of the offending field in the body, dotted; ``None`` if it is not about one.
    """

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field

    def response(self) -> JSONResponse:
        """``{"error": {"type", "message", "field"}}``."""
        kind = "internal" if self.status >= 500 else TYPES.get(self.status, "invalid_request")
        return JSONResponse(
            {"error": {"type": kind, "message": self.message, "field": self.field}},
            status_code=self.status,
            headers={"Retry-After": "1"} if self.status == 429 else None,
        )


class RequestIds:
    """Middleware: every answer carries ``X-Request-ID``, and a fault becomes a 500 that names it.

    The client's id is kept if it is short and plain; the traceback goes to the log under that id.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except ClientDisconnect:
            logger.info("request %s: the client went away", request_id)
        except Exception:
            logger.exception("request %s failed", request_id)
            if started:
                raise
            fault = ApiError(500, f"internal error; the log has it under request {request_id}")
            await fault.response()(scope, receive, send_with_id)


def add_error_handling(app: FastAPI) -> None:
    """Give every error of an app the one body shape, and every answer its request id."""

    async def told(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ApiError)
        return error.response()

    async def routing(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        response = ApiError(error.status_code, error.detail).response()
        response.headers.update(error.headers or {})
        return response

    app.add_exception_handler(ApiError, told)
    app.add_exception_handler(HTTPException, routing)
    app.add_middleware(RequestIds)
