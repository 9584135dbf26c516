"""The body of ``POST /judge``, checked before it is queued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from judging import CustosError, JudgeRequest
from judging.best_judge import choose_judge
from serve.errors import ApiError
from serve.limits import Limits
from serve.queue.service import Service
from serve.requests.checks import checked_requests, parse_request, refusal
from serve.requests.remote_images import RemoteImages


@dataclass(frozen=True)
class Call:
    """One valid call."""

    requests: tuple[JudgeRequest, ...]
    judges: tuple[str, ...]
    """Name of the judge of each request."""
    is_list: bool
    """The body had ``requests``, so the answer is a list too."""


def parse_call(body: bytes, service: Service, remote_images: RemoteImages | None = None) -> Call:
    """Validate a body: one request object, or ``{"requests": [...]}``. Either may name a ``judge``.

    Raises:
        ApiError: 422 naming the field, 404 for an unknown judge.
    """
    decoded = decode_object(body)
    judge = _named_judge(decoded.pop("judge", None), service)
    is_list = "requests" in decoded
    rows = _rows(decoded, service.limits) if is_list else [decoded]
    prefixes = [f"requests.{number}." if is_list else "" for number in range(len(rows))]
    requests = checked_requests(
        [parse_request(row, prefix) for row, prefix in zip(rows, prefixes, strict=True)],
        *(prefixes, service.limits, remote_images),
    )
    judges = (
        _judge_of(request, judge, service, prefix)
        for request, prefix in zip(requests, prefixes, strict=True)
    )
    return Call(requests, tuple(judges), is_list)


def parse_single(
    body: bytes, service: Service, remote_images: RemoteImages | None = None
) -> tuple[JudgeRequest, str]:
    """Validate a body that must hold one request; return the request and the name of its judge.

    Raises:
        ApiError: As :func:`parse_call`.
    """
    decoded = decode_object(body)
    judge = _named_judge(decoded.pop("judge", None), service)
    (request,) = checked_requests([parse_request(decoded, "")], [""], service.limits, remote_images)
    return request, _judge_of(request, judge, service, "")


def decode_object(body: bytes) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        ApiError: 422 if it is not one.
    """
    try:
        decoded = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise ApiError(422, "the body is not valid JSON", "body") from None
    if not isinstance(decoded, dict):
        raise ApiError(422, "expected a JSON object", "body")
    return decoded


def _judge_of(request: JudgeRequest, judge: str | None, service: Service, prefix: str) -> str:
    """Return the judge that the body names, or else the best one for the request."""
    if judge is None:
        try:
            return choose_judge(service.judges, request)
        except CustosError as error:
            raise refusal(error, prefix) from None
    if request.task not in service.judges[judge].tasks:
        raise ApiError(422, f"judge '{judge}' does not take '{request.task}'", f"{prefix}task")
    return judge


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
        raise ApiError(422, "unknown field; beside 'requests' only 'judge' may stand", unknown[0])
    return rows
