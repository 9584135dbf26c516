"""The body of ``POST /judge``: read, bounded and checked before a model sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import Request
from pydantic_core import from_json

from judging import JudgeRequest
from serve.checks import check_requests, parse_request
from serve.errors import ApiError
from serve.limits import Limits

if TYPE_CHECKING:
    from serve.service import Service


@dataclass(frozen=True)
class Call:
    """One valid call."""

    requests: tuple[JudgeRequest, ...]
    judges: tuple[str, ...]
    """Name of the judge of each request."""
    is_list: bool
    """The body had ``requests``: answer with a list."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """Read a body of at most ``limits.body_bytes``, however it is sent.

    A longer one is read on and dropped up to twice that, so that its sender gets to see the answer.

    Raises:
        ApiError: 413.
    """
    body = bytearray()
    num_bytes = 0
    async for chunk in request.stream():
        num_bytes += len(chunk)
        if num_bytes <= limits.body_bytes:
            body += chunk
        elif num_bytes > 2 * limits.body_bytes:
            break
    if num_bytes > limits.body_bytes:
        raise ApiError(413, f"the body is larger than {limits.body_bytes:,} bytes")
    return bytes(body)


def parse_call(body: bytes, service: Service) -> Call:
    """Validate a body: one request object, or ``{"requests": [...]}``; either may name a ``judge``.

    Raises:
        ApiError: 422 naming the field, 404 for an unknown judge.
    """
    decoded = decode_object(body)
    named = _named_judge(decoded.pop("judge", None), service)
    is_list = "requests" in decoded
    rows = _rows(decoded, service.limits) if is_list else [decoded]
    prefixes = [f"requests.{number}." if is_list else "" for number in range(len(rows))]
    requests = tuple(map(parse_request, rows, prefixes))
    check_requests(requests, prefixes, service.limits)
    chosen = []
    for request, prefix in zip(requests, prefixes, strict=True):
        name = named or service.judge_for(request.task, prefix)
        if request.task not in service.judges[name].tasks:
            raise ApiError(422, f"judge '{name}' does not take '{request.task}'", f"{prefix}task")
        chosen.append(name)
    return Call(requests, tuple(chosen), is_list)


def decode_object(body: bytes) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        ApiError: 422.
    """
    try:
        decoded = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise ApiError(422, "the body is not valid JSON", "body") from None
    if not isinstance(decoded, dict):
        raise ApiError(422, "expected a JSON object", "body")
    return decoded


def _named_judge(name: Any, service: Service) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise ApiError(422, "expected the name of a judge", "judge")
    if name not in service.judges:
        raise ApiError(404, f"no judge '{name}' here; see GET /judges", "judge")
    return name


def _rows(decoded: dict[str, Any], limits: Limits) -> list[Any]:
    rows = decoded["requests"]
    if not isinstance(rows, list):
        raise ApiError(422, "expected a list of request objects", "requests")
    if len(rows) > limits.requests:
        raise ApiError(
            422,
            f"{len(rows)} requests in one call; at most {limits.requests} are taken",
            "requests",
        )
    if unknown := sorted(decoded.keys() - {"requests"}):
        raise ApiError(422, "not known beside 'requests'; only 'judge' is", unknown[0])
    return rows
