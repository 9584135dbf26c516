"""The body of ``POST /judge``, checked before it is queued."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import from_json, to_json

from judging import CustosError, JudgeRequest
from judging.files.records import refuse_repeated_keys
from judging.judge.best_judge import choose_judge
from serve.errors import ApiError
from serve.limits import Limits
from serve.queue.service import Service
from serve.requests.checks import check_request, parse_request, refusal, with_pictures
from serve.requests.remote_images import RemoteImages

PART_BYTES = 65_536
"""Bytes of a body that are looked through at once."""


@dataclass(frozen=True)
class Call:
    """One valid call."""

    requests: tuple[JudgeRequest, ...]
    prefixes: tuple[str, ...]
    """Path of each request in the body, as for :func:`parse_request`."""
    judges: tuple[str, ...]
    """Name of the judge of each request."""
    is_list: bool
    """The body held a list of requests, so the answer is a list too."""


async def read_call(
    body: bytes,
    service: Service,
    remote_images: RemoteImages | None,
    parse: Callable[[bytes, Service], Call],
) -> Call:
    """Validate a body beside the event loop, and fetch its pictures.

    Args:
        body: JSON.
        service: Has the judges, the limits and the readers.
        remote_images: Fetches pictures; without, only data URLs are taken.
        parse: :func:`parse_call` or :func:`parse_single`.

    Raises:
        ApiError: As they do.
    """
    call = await service.readers.read(len(body), parse, body, service)
    requests = await with_pictures(call.requests, call.prefixes, service, remote_images)
    return replace(call, requests=requests)


def parse_call(body: bytes, service: Service) -> Call:
    """Validate a body: one request object, a list of them, or ``{"requests": [...]}``.

    Every request may name its ``judge``. Beside ``requests``, a name stands for all of them.
    Pictures are left as they are.

    Raises:
        ApiError: 422 naming the field, 404 for an unknown judge.
    """
    decoded = decode_body(body, service.limits)
    judge: str | None = None
    if isinstance(decoded, list):
        rows, path = decoded, ""
    elif isinstance(decoded, dict) and "requests" in decoded:
        judge = _take_judge(decoded, service)
        rows, path = _listed_rows(decoded), "requests."
    elif not isinstance(decoded, dict):
        raise ApiError(422, "expected a request object, or a list of them", "body")
    else:
        return _parse_rows([decoded], [""], None, service, is_list=False)
    if len(rows) > service.limits.requests:
        message = f"{len(rows)} requests in one call; at most {service.limits.requests} are taken"
        raise ApiError(422, message, path.rstrip(".") or "body")
    prefixes = [f"{path}{number}." for number in range(len(rows))]
    return _parse_rows(rows, prefixes, judge, service, is_list=True)


def parse_single(body: bytes, service: Service) -> Call:
    """Validate a body that must hold one request.

    Raises:
        ApiError: As :func:`parse_call`.
    """
    rows = [decode_object(body, service.limits)]
    return _parse_rows(rows, [""], None, service, is_list=False)


def decode_body(body: bytes, limits: Limits) -> Any:
    """Decode JSON in UTF-8, or in another form of Unicode that its first bytes show.

    Raises:
        ApiError: 422 if it is not valid, has a number that is too large, or an object has a key
            twice; 413 if it has too many values.
    """
    try:
        if (encoding := json.detect_encoding(body)) != "utf-8":
            body = body.decode(encoding).encode()
        _check_values(body, limits)
        decoded = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(422, _fault(body, error), "body") from None
    written = to_json(decoded)
    if b"Infinity" in written and to_json(decoded, inf_nan_mode="null") != written:
        raise ApiError(422, "a number in the body is too large", "body")
    try:
        refuse_repeated_keys(body, written)
    except CustosError as error:
        raise ApiError(422, str(error), "body") from None
    return decoded


def decode_object(body: bytes, limits: Limits) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        ApiError: 422 if it is not one.
    """
    decoded = decode_body(body, limits)
    if not isinstance(decoded, dict):
        raise ApiError(422, "expected a JSON object", "body")
    return decoded


def _check_values(body: bytes, limits: Limits) -> None:
    """Check, before JSON is decoded, that it has few values: each takes much more memory then.

    Raises:
        ApiError: 413 if it has many.
    """
    num_values, in_text, rest = 1, 0, b""
    for start in range(0, len(body), PART_BYTES):
        part = (rest + body[start : start + PART_BYTES]).replace(rb"\\", b"")
        rest = part[-1:] if part.endswith(b"\\") else b""  # the other half comes in the next part
        pieces = part.replace(rb"\"", b"").split(b'"')
        outside_texts = b"".join(pieces[in_text::2])
        in_text = (in_text + len(pieces) - 1) % 2
        num_values += sum(map(outside_texts.count, (b",", b"[", b"{")))
        if num_values > limits.values:
            raise ApiError(413, f"the body has more than {limits.values:,} values", "body")


def _no_text(fault: UnicodeDecodeError) -> str:
    where = f"byte 0x{fault.object[fault.start]:02x} at position {fault.start}"
    return f"the body is not UTF-8 text ({where}); encode it so"


def _fault(body: bytes, error: ValueError) -> str:
    """Return why a body cannot be decoded."""
    try:
        body.decode()
    except UnicodeDecodeError as fault:  # not kept in a variable, as it holds body and frame
        return _no_text(fault)
    if isinstance(error, UnicodeDecodeError):
        return _no_text(error)
    if "recursion limit" in str(error):
        return "lists and objects stand in each other more than 200 times"
    return "the body is not valid JSON"


def _parse_rows(
    rows: Sequence[Any],
    prefixes: Sequence[str],
    judge: str | None,
    service: Service,
    *,
    is_list: bool,
) -> Call:
    """Return the call that some rows make.

    Args:
        rows: What the client sent as requests.
        prefixes: Path of each in the body, as for :func:`parse_request`.
        judge: The judge that is named for all of them.
        service: Has the judges and the limits.
        is_list: The body held a list.
    """
    names = [
        _take_judge(row, service, prefix) if isinstance(row, dict) else None
        for row, prefix in zip(rows, prefixes, strict=True)
    ]
    for name, prefix in zip(names, prefixes, strict=True):
        if judge and name and name != judge:
            message = f"'{name}' is named here and '{judge}' beside 'requests'; name one of them"
            raise ApiError(422, message, f"{prefix}judge")
    resolved = [
        _with_judge(parse_request(row, prefix, service.limits), name or judge, service, prefix)
        for row, name, prefix in zip(rows, names, prefixes, strict=True)
    ]
    for (request, _), prefix in zip(resolved, prefixes, strict=True):
        check_request(request, prefix, service.limits)
    requests, judges = zip(*resolved, strict=True) if resolved else ((), ())
    return Call(requests, tuple(prefixes), judges, is_list)


def _with_judge(
    request: JudgeRequest, judge: str | None, service: Service, prefix: str
) -> tuple[JudgeRequest, str]:
    """Return a request as its judge takes it, and the judge: the named one, or else the best."""
    try:
        name = judge or choose_judge(service.judges, request)
        return service.judges[name].resolve(request), name
    except CustosError as error:
        raise refusal(error, prefix) from None


def _take_judge(decoded: dict[str, Any], service: Service, prefix: str = "") -> str | None:
    """Remove the name of a judge from an object and return it; ``None`` if there is none."""
    name = decoded.pop("judge", None)
    if name is None:
        return None
    if not isinstance(name, str):
        raise ApiError(422, "expected the name of a judge", f"{prefix}judge")
    if name not in service.judges:
        known = ", ".join(service.judges)
        raise ApiError(404, f"no judge '{name[:200]}' here; there are: {known}", f"{prefix}judge")
    return name


def _listed_rows(decoded: dict[str, Any]) -> list[Any]:
    rows = decoded["requests"]
    if not isinstance(rows, list):
        raise ApiError(422, "expected a list of request objects", "requests")
    if unknown := sorted(decoded.keys() - {"requests"}):
        raise ApiError(422, "unknown field; beside 'requests' only 'judge' may stand", unknown[0])
    return rows
