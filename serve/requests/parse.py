"""The body of ``POST /judge``, checked before a model sees it; how long a caller waits for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from judging import CustosError, JudgeRequest
from judging.best_judge import choose_judge
from serve.errors import ApiError
from serve.limits import Limits
from serve.requests.checks import checked_requests, parse_request, refusal

if TYPE_CHECKING:
    from serve.queue.service import Service

DEADLINE_HEADER = "X-Deadline-Ms"

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One valid call."""

    requests: tuple[JudgeRequest, ...]
    judges: tuple[str, ...]
    """Name of the judge of each request."""
    is_list: bool
    """The body had ``requests``: answer with a list."""


def deadline_of(request: Request) -> float | None:
    """Seconds the caller will wait, from ``X-Deadline-Ms``; ``None`` if it does not say.

    Raises:
        ApiError: 422 if it is not a positive whole number.
    """
    given = request.headers.get(DEADLINE_HEADER)
    if given is None:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,8}", given):
        raise ApiError(422, "expected a positive whole number of milliseconds", DEADLINE_HEADER)
    return int(given) / 1000


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do some work for a client whose body has been read, and cancel it if the client hangs up.

    Raises:
        ClientDisconnect: If it does.
    """
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise ClientDisconnect
    finally:
        leaving.cancel()
        if doing.cancel():
            await asyncio.wait({doing})


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


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
    requests = checked_requests(
        [parse_request(row, prefix) for row, prefix in zip(rows, prefixes, strict=True)],
        *(prefixes, service.limits, service.remote_images),
    )
    judges = (
        _judge_of(request, named, service, prefix)
        for request, prefix in zip(requests, prefixes, strict=True)
    )
    return Call(requests, tuple(judges), is_list)


def parse_one(body: bytes, service: Service) -> tuple[JudgeRequest, str]:
    """Validate a body that must hold one request, and name its judge.

    Raises:
        ApiError: As :func:`parse_call`.
    """
    decoded = decode_object(body)
    named = _named_judge(decoded.pop("judge", None), service)
    (request,) = checked_requests(
        [parse_request(decoded, "")], [""], service.limits, service.remote_images
    )
    return request, _judge_of(request, named, service, "")


def _judge_of(request: JudgeRequest, named: str | None, service: Service, prefix: str) -> str:
    if named is None:
        try:
            return choose_judge(service.judges, request)
        except CustosError as error:
            raise refusal(error, prefix) from None
    if request.task not in service.judges[named].tasks:
        raise ApiError(422, f"judge '{named}' does not take '{request.task}'", f"{prefix}task")
    return named


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
        raise ApiError(
            404, f"no judge '{name}' here; there are: {', '.join(service.judges)}", "judge"
        )
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
