"""``POST /judge`` and ``POST /judge/stream``: routes, and the body, checked before it is queued.

What is wrong with it is an ``ApiError``: 422, which names the field, unless another status is told.
"""

from __future__ import annotations

import json
import math
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import punctuation
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from evaluation.report.reliability import unmeasured_tasks
from judging import CustosError, JudgeRequest, Verdict
from judging.errors import FieldError
from judging.files.pictures import PictureSize
from judging.files.records import refuse_repeated_keys
from judging.judge.best_judge import choose_judge
from judging.tasks import get_task
from judging.types import field_names
from serve.calls.context import require_open
from serve.calls.errors import ApiError
from serve.calls.limits import MAX_SEED, Limits
from serve.calls.waiting import Deadline, unless_gone, with_first_part, with_heartbeat
from serve.pictures.received import measure
from serve.queue.intake import CheckedRequest
from serve.queue.service import Service, Timing

MARKS = b",[{"
"""Bytes that stand before a further value, unless they are part of a text."""
PART_BYTES = 65_536
"""Bytes of a body that are looked through at once."""
MOST_ALSO_NAMED = 5
"""Most wrong fields of a request that an error names beside the first."""
TEXT_FIELDS = tuple(
    name
    for name, field in JudgeRequest.model_fields.items()
    if field.annotation in (str, str | None, tuple[str, ...])
)
"""Fields of a request that hold a text, or texts whose characters count together."""
T = TypeVar("T")


@dataclass(frozen=True)
class ParsedCall:
    """A call whose pictures are still as they came."""

    requests: tuple[JudgeRequest, ...]
    """As their judges take them."""
    judges: tuple[str, ...]
    """Name of the judge of each."""
    prefixes: tuple[str, ...]
    """Path of each in the body, to stand before a field's name: ``requests.3.``."""
    is_list: bool
    """The body held a list of requests, so the answer is a list too."""


async def read_body(
    request: Request, service: Service, read: Callable[[bytes, Deadline], Coroutine[Any, Any, T]]
) -> tuple[T, Deadline]:
    """Admit a call, and read its body until its deadline, which is returned with it.

    Raises ``ApiError`` as :meth:`Service.admit` and ``read``; 504 past the deadline.
    """
    service.admit()
    deadline = Deadline.of_call(request, service.limits)
    async with deadline.within():
        body = await request.body()
        await service.readers.turn()
        return await unless_gone(request, read(body, deadline)), deadline


async def read_call(
    body: bytes, service: Service, parse: Callable[[bytes, Service], ParsedCall]
) -> tuple[tuple[CheckedRequest, ...], bool]:
    """Validate a body beside the event loop, and fetch and measure its pictures.

    The flag beside the requests tells whether they came as a list.
    """
    call = await service.readers.read(len(body), parse, body, service)
    groups = [
        (request.images, f"{prefix}images")
        for request, prefix in zip(call.requests, call.prefixes, strict=True)
    ]
    pictures = await measured_pictures(groups, service)
    requests = tuple(
        service.checked(request, judge, *measured)
        for request, judge, measured in zip(call.requests, call.judges, pictures, strict=True)
    )
    return requests, call.is_list


async def measured_pictures(
    groups: Sequence[tuple[tuple[str, ...], str]], service: Service
) -> list[tuple[tuple[str, ...], tuple[PictureSize, ...]]]:
    """Fetch the pictures of each request or message, and return them as data URLs with their sizes.

    Each group names its path in the body.
    """
    fetched = [images for images, _ in groups]
    if service.remote_images:
        fetched = await service.remote_images.fetch_all(groups)
    length = sum(len(source) for images in fetched for source in images)
    fields = [field for _, field in groups]
    sizes = await service.readers.read(length, measure, fetched, fields, service.limits)
    return list(zip(fetched, sizes, strict=True))


def parse_request(row: Any, prefix: str, limits: Limits) -> JudgeRequest:
    """Validate one decoded request object; ``prefix`` is its path as in :class:`ParsedCall`."""
    require_open()
    if isinstance(row, dict):
        check_items(row, prefix, limits)
    try:
        return JudgeRequest.model_validate(row)
    except ValidationError as error:
        messages: dict[str, str] = {}
        for wrong in FieldError.all_from_validation(error, names=field_names(JudgeRequest)):
            messages.setdefault(_path(wrong.field, row, prefix), wrong.message)
        (path, message), *others = messages.items()
        also = [f"; and field '{other}': {text}" for other, text in others[:MOST_ALSO_NAMED]]
        raise ApiError(422, "".join([message, *also]), path) from None


def check_items(fields: Mapping[str, Any], prefix: str, limits: Limits) -> None:
    """Check that an object has few fields, and every list in them few items."""
    if len(fields) > limits.items:
        raise ApiError(422, f"more than {limits.items} fields", prefix.rstrip(".") or "body")
    for name, value in fields.items():
        if isinstance(value, list | tuple) and len(value) > limits.items:
            raise ApiError(422, f"more than {limits.items} items", f"{prefix}{name}")


def refusal(error: CustosError, prefix: str = "") -> ApiError:
    """Answer a bad request with 422; a :class:`FieldError` says which field is wrong."""
    field, message = "", str(error)
    if isinstance(error, FieldError):
        field, message = error.field, error.message
    return ApiError(422, message, (prefix + field).rstrip(".") or "body")


def check_request(request: JudgeRequest, prefix: str, limits: Limits) -> None:
    """Check that the texts, the seed and the number of pictures of a request are within limits."""
    for name in TEXT_FIELDS:
        value = getattr(request, name) or ""
        num_chars = sum(map(len, value))  # the same for a string and a tuple of strings
        if num_chars > limits.field_chars:
            raise ApiError(422, f"longer than {limits.field_chars:,} characters", f"{prefix}{name}")
    if not 0 <= request.seed <= MAX_SEED:
        raise ApiError(422, f"expected 0 to {MAX_SEED}", f"{prefix}seed")
    if len(request.images) > limits.images:
        raise ApiError(422, f"more than {limits.images} pictures", f"{prefix}images")


def _path(field: str, row: Any, prefix: str) -> str:
    """Build the path of a wrong field under the name that the client gave a response."""
    if field.partition(".")[0] == "responses" and "responses" not in row:
        is_pair = "response_a" in row or "response_b" in row
        sides = {"responses.0": "response_a", "responses.1": "response_b"}
        field = sides.get(field, field) if is_pair else "response"
    return (prefix + field).rstrip(".") or "body"


def parse_call(body: bytes, service: Service) -> ParsedCall:
    """Validate a body: one request object, a list of them, or ``{"requests": [...]}``.

    Every request may name its ``judge``. Beside ``requests``, a name stands for all of them.
    Pictures are left as they are. An unknown judge is 404.
    """
    decoded = decode_body(body, service.limits)
    judge: str | None = None
    if isinstance(decoded, list):
        rows, path = decoded, ""
    elif isinstance(decoded, dict) and "requests" in decoded:
        judge = _take_judge(decoded, service)
        rows, path = decoded["requests"], "requests."
        if not isinstance(rows, list):
            raise ApiError(422, "expected a list of request objects", "requests")
        if unknown := sorted(decoded.keys() - {"requests"}):
            message = "unknown field; beside 'requests' only 'judge' may stand"
            raise ApiError(422, message, unknown[0])
    elif not isinstance(decoded, dict):
        raise ApiError(422, "expected a request object, or a list of them", "body")
    else:
        return _parse_rows([decoded], [""], None, service, is_list=False)
    if len(rows) > service.limits.requests:
        message = f"{len(rows)} requests in one call; at most {service.limits.requests} are taken"
        raise ApiError(422, message, path.rstrip(".") or "body")
    prefixes = [f"{path}{number}." for number in range(len(rows))]
    return _parse_rows(rows, prefixes, judge, service, is_list=True)


def parse_single(body: bytes, service: Service) -> ParsedCall:
    """Validate a body that must hold one request."""
    return _parse_rows([decode_object(body, service.limits)], [""], None, service, is_list=False)


def decode_body(body: bytes, limits: Limits) -> Any:
    """Decode JSON in UTF-8, or in another form of Unicode that its first bytes show.

    No number may be too large and no key may stand twice. Too many values are 413.
    """
    try:
        if (encoding := json.detect_encoding(body)) != "utf-8":
            body = body.decode(encoding).encode()
        _check_values(body, limits)
        decoded = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(422, _fault(body, error), "body") from None
    num_quotes, has_infinity = _look_through(decoded)
    if has_infinity:
        raise ApiError(422, "a number in the body is too large", "body")
    try:
        refuse_repeated_keys(body, num_quotes)
    except CustosError as error:
        raise ApiError(422, str(error), "body") from None
    return decoded


def decode_object(body: bytes, limits: Limits) -> dict[str, Any]:
    """Decode a JSON object."""
    decoded = decode_body(body, limits)
    if not isinstance(decoded, dict):
        raise ApiError(422, "expected a JSON object", "body")
    return decoded


def _check_values(body: bytes, limits: Limits) -> None:
    """Check, before JSON is decoded, that it has few values: each takes much more memory then."""
    starts = range(0, len(body), PART_BYTES)
    characters = np.frombuffer(body, np.uint8)
    parts = (characters[start : start + PART_BYTES] for start in starts)
    if sum(np.count_nonzero(part == mark) for part in parts for mark in MARKS) < limits.values:
        return  # There are few even with those in texts, which are slow to tell apart.
    num_values, in_text, rest = 1, 0, b""
    for start in starts:
        part = (rest + body[start : start + PART_BYTES]).replace(rb"\\", b"")
        rest = part[-1:] if part.endswith(b"\\") else b""  # the other half comes in the next part
        pieces = part.replace(rb"\"", b"").split(b'"')
        outside_texts = b"".join(pieces[in_text::2])
        in_text = (in_text + len(pieces) - 1) % 2
        num_values += sum(map(outside_texts.count, MARKS))
        if num_values > limits.values:
            raise ApiError(413, f"the body has more than {limits.values:,} values", "body")


def _look_through(decoded: Any) -> tuple[int, bool]:
    """Count the quotation marks that a value has as JSON, and tell if a number in it is infinite.

    To write the JSON would take several times as long as to decode it, and no other thread could
    run meanwhile.
    """
    num_quotes, has_infinity = 0, False
    rest = [decoded]
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            num_quotes += 2 + value.count('"')
        elif isinstance(value, dict):
            rest += value
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, float):
            has_infinity |= math.isinf(value)
    return num_quotes, has_infinity


def _fault(body: bytes, error: ValueError) -> str:
    """Say why a body cannot be decoded."""
    where = None
    try:
        body.decode()
    except UnicodeDecodeError as fault:  # not kept in a variable, as it holds body and frame
        where = fault.start, body[fault.start]
    if where is None and isinstance(error, UnicodeDecodeError):
        where = error.start, error.object[error.start]
    if where:
        position, byte = where
        return (
            f"the body is not UTF-8 text (byte 0x{byte:02x} at position {position}); encode it so"
        )
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
) -> ParsedCall:
    """Read the call that some rows make; ``judge`` is named for all of them."""
    names = [
        _take_judge(row, service, prefix) if isinstance(row, dict) else None
        for row, prefix in zip(rows, prefixes, strict=True)
    ]
    for name, prefix in zip(names, prefixes, strict=True):
        if judge and name and name != judge:
            message = f"'{name}' is named here and '{judge}' beside 'requests'; name one of them"
            raise ApiError(422, message, f"{prefix}judge")
    requests: list[JudgeRequest] = []
    judges: list[str] = []
    for row, name, prefix in zip(rows, names, prefixes, strict=True):
        request = parse_request(row, prefix, service.limits)
        try:
            judges.append(name or judge or choose_judge(service.judges, request))
            requests.append(service.judges[judges[-1]].resolve(request))
        except CustosError as error:
            raise refusal(error, prefix) from None
    for request, prefix in zip(requests, prefixes, strict=True):
        check_request(request, prefix, service.limits)
    return ParsedCall(tuple(requests), tuple(judges), tuple(prefixes), is_list)


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


NOT_MEASURED_HEADER = "X-Not-Measured"
"""Header of an answer whose judge has no figures on the task, or was not trained on its rubric."""
EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["critique", "verdict", "error"]},
        "data": {"type": "string", "description": "JSON: `{text}`, a verdict, or an error body."},
    },
    "required": ["event", "data"],
}
"""Schema of a server-sent event of ``POST /judge/stream``."""


class Verdicts(BaseModel):
    """Answer to a list of requests, in their order."""

    verdicts: tuple[Verdict, ...]


def routes(service: Service) -> APIRouter:
    """Build the routes that grade requests."""
    router = APIRouter()

    @router.post("/judge", response_model=Verdict | Verdicts)
    async def judge(request: Request) -> Response:
        """Grade one request, or a list of them.

        The header `X-Deadline-Ms` says how long the caller will wait; then the answer is 504.
        The header `X-Not-Measured` names judges that were asked and not measured on the task.
        """
        (requests, is_list), deadline = await read_body(
            request, service, lambda body, _: read_call(body, service, parse_call)
        )
        timing = Timing()
        grading = service.grade(requests, deadline, timing)
        verdicts = await unless_gone(request, grading)
        answer = Verdicts(verdicts=verdicts) if is_list else verdicts[0]
        headers = {
            "X-Queue-Ms": f"{1000 * timing.queue:.1f}",  # of the slowest request
            "X-Inference-Ms": f"{1000 * timing.inference:.1f}",
            **not_measured_headers(requests, verdicts),
        }
        return Response(answer.model_dump_json(), media_type="application/json", headers=headers)

    @router.post(
        "/judge/stream",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": EVENT}}}},
    )
    async def judge_stream(request: Request) -> Response:
        """Grade one request; events `critique` with pieces of text, then one `verdict`."""
        ([checked], _), deadline = await read_body(
            request, service, lambda body, _: read_call(body, service, parse_single)
        )
        parts = with_heartbeat(service.stream(checked, deadline))
        return EventSourceResponse(_events(await unless_gone(request, with_first_part(parts))))

    return router


def not_measured_headers(
    requests: Sequence[CheckedRequest], verdicts: Iterable[Verdict] | None = None
) -> dict[str, str]:
    """Build the header that names judges with what they lack figures on; empty if all have some.

    No judge was asked for what a rule decided, once there are verdicts. Characters that no header
    may hold are percent-encoded, as in an address.
    """
    given: Iterable[Verdict | None] = verdicts or [None] * len(requests)
    named = dict.fromkeys(
        f"{each.name} on {part}"
        for each, verdict in zip(requests, given, strict=True)
        if (verdict is None or verdict.posterior) and (part := _without_figures(each))
    )
    texts = list(named)
    return {NOT_MEASURED_HEADER: quote(", ".join(texts), safe=f"{punctuation} ")} if texts else {}


def _without_figures(asked: CheckedRequest) -> str | None:
    """Name the task that a judge has no figures on, or the rubric that it was not trained for."""
    task = get_task(asked.request.task)
    if _lacks_figures(asked.judge.folder, task.name):
        return task.name
    card = asked.judge.card_for(task.name)
    is_known = card is None or task.rubric(asked.request) in card.tasks[task.name]
    return None if is_known else task.full_rubric(asked.request)


@lru_cache(maxsize=1024)
def _lacks_figures(folder: Path | None, task: str) -> bool:
    return bool(unmeasured_tasks(folder, (task,)))


async def _events(parts: AsyncGenerator[str | Verdict | None]) -> AsyncIterator[bytes]:
    """Yield events ``critique`` and ``verdict``, or ``error`` with the body of an error.

    Where there is nothing to say yet, a comment keeps the connection open. The data are ASCII, as
    many clients take further characters of Unicode (U+2028) for the end of a line.
    """
    async with aclosing(parts):
        try:
            async for part in parts:
                if part is None:
                    yield KEEPALIVE_COMMENT
                elif isinstance(part, Verdict):
                    verdict = part.model_dump_json(ensure_ascii=True)
                    yield format_sse_event(event="verdict", data_str=verdict)
                else:
                    yield format_sse_event(event="critique", data_str=json.dumps({"text": part}))
        except ApiError as error:
            body = json.dumps(error.body(), separators=(",", ":"))
            yield format_sse_event(event="error", data_str=body)
