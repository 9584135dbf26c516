"""The body of ``POST /judge``: read, bounded and checked before a model sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from pydantic import ValidationError
from pydantic_core import from_json

from judging import CustosError, Judge, JudgeRequest
from judging.tasks import get_task
from serve.errors import ApiError
from serve.images import MAX_IMAGES, num_pixels

MAX_BODY_BYTES = 20_000_000
MAX_REQUESTS = 256
MAX_CALL_PIXELS = 64_000_000
NAMED_FIELD = re.compile(r"field '([^']+)': (.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """One valid call."""

    requests: tuple[JudgeRequest, ...]
    judges: tuple[str, ...]
    """Name of the judge of each request."""
    is_list: bool
    """The body had ``requests``: answer with a list."""


async def read_body(request: Request) -> bytes:
    """Read a body of at most ``MAX_BODY_BYTES``, however it is sent.

    A longer one is read on and dropped up to twice that, so that its sender gets to see the answer.

    Raises:
        ApiError: 413.
    """
    body = bytearray()
    num_bytes = 0
    async for chunk in request.stream():
        num_bytes += len(chunk)
        if num_bytes <= MAX_BODY_BYTES:
            body += chunk
        elif num_bytes > 2 * MAX_BODY_BYTES:
            break
    if num_bytes > MAX_BODY_BYTES:
        raise ApiError(413, f"the body is larger than {MAX_BODY_BYTES:,} bytes")
    return bytes(body)


def parse_call(body: bytes, judges: Mapping[str, Judge]) -> Call:
    """Validate a body: one request object, or ``{"requests": [...]}``; either may name a ``judge``.

    Raises:
        ApiError: 422 naming the field, 404 for an unknown judge.
    """
    try:
        decoded = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise ApiError(422, "the body is not valid JSON", "body") from None
    if not isinstance(decoded, dict):
        raise ApiError(422, 'expected a request object or {"requests": [...]}', "body")
    named = _named_judge(decoded.pop("judge", None), judges)
    is_list = "requests" in decoded
    rows = _rows(decoded) if is_list else [decoded]
    prefixes = [f"requests.{number}." if is_list else "" for number in range(len(rows))]
    requests = tuple(map(_parse_request, rows, prefixes))
    _check_pictures(requests, prefixes)
    chosen = tuple(
        named or _judge_for(request.task, judges, prefix)
        for request, prefix in zip(requests, prefixes, strict=True)
    )
    for request, name, prefix in zip(requests, chosen, prefixes, strict=True):
        if request.task not in judges[name].tasks:
            raise ApiError(422, f"judge '{name}' does not take '{request.task}'", f"{prefix}task")
    return Call(requests, chosen, is_list)


def _named_judge(name: Any, judges: Mapping[str, Judge]) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise ApiError(422, "expected the name of a judge", "judge")
    if name not in judges:
        raise ApiError(404, f"no judge '{name}' here; there are: {', '.join(judges)}", "judge")
    return name


def _rows(decoded: dict[str, Any]) -> list[Any]:
    rows = decoded["requests"]
    if not isinstance(rows, list):
        raise ApiError(422, "expected a list of request objects", "requests")
    if len(rows) > MAX_REQUESTS:
        raise ApiError(
            422, f"{len(rows)} requests in one call; at most {MAX_REQUESTS} are taken", "requests"
        )
    if unknown := sorted(decoded.keys() - {"requests"}):
        raise ApiError(422, "not known beside 'requests'; only 'judge' is", unknown[0])
    return rows


def _parse_request(row: Any, prefix: str) -> JudgeRequest:
    """Validate one request, as a record and as its task sees it."""
    try:
        request = JudgeRequest.model_validate(row)
        get_task(request.task).check(request)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise ApiError(422, message, (prefix + path).rstrip(".") or "body") from None
    except CustosError as error:
        named = NAMED_FIELD.fullmatch(str(error))
        path, message = named.groups() if named else ("", str(error))
        raise ApiError(422, message, (prefix + path).rstrip(".") or "body") from None
    return request


def _check_pictures(requests: tuple[JudgeRequest, ...], prefixes: list[str]) -> None:
    total = 0
    for request, prefix in zip(requests, prefixes, strict=True):
        field = f"{prefix}images"
        if len(request.images) > MAX_IMAGES:
            raise ApiError(422, f"more than {MAX_IMAGES} pictures", field)
        total += sum(num_pixels(source, field) for source in request.images)
        if total > MAX_CALL_PIXELS:
            raise ApiError(422, f"more than {MAX_CALL_PIXELS:,} pixels in one call", field)


def _judge_for(task: str, judges: Mapping[str, Judge], prefix: str) -> str:
    for name, judge in judges.items():
        if task in judge.tasks:
            return name
    raise ApiError(422, f"no judge here takes '{task}'", f"{prefix}task")
