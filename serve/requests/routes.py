"""``POST /judge`` and ``POST /judge/stream``."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import BaseModel

from judging import Verdict
from serve.errors import ApiError
from serve.measured import not_measured_headers
from serve.queue.service import Service, Timing
from serve.requests.parse import parse_call, parse_single, read_call
from serve.requests.remote_images import RemoteImages
from serve.requests.waiting import deadline_of, unless_gone, with_heartbeat

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


def routes(service: Service, remote_images: RemoteImages | None = None) -> APIRouter:
    """Return the routes that grade requests.

    Args:
        service: What all routes share.
        remote_images: Fetches pictures; without, only data URLs are taken.
    """
    router = APIRouter()

    @router.post("/judge", response_model=Verdict | Verdicts)
    async def judge(request: Request) -> Response:
        """Grade one request, or a list of them.

        The header `X-Deadline-Ms` says how long the caller will wait; then the answer is 504.
        The header `X-Not-Measured` names judges that were asked and not measured on the task.
        """
        service.require_ready()
        deadline = deadline_of(request, service.limits)
        async with deadline.within():
            body = await request.body()
            call = await unless_gone(request, read_call(body, service, remote_images, parse_call))
        timing = Timing()
        verdicts = await unless_gone(
            request,
            service.grade(call.requests, call.judges, deadline=deadline, timing=timing),
        )
        answer = Verdicts(verdicts=verdicts) if call.is_list else verdicts[0]
        text = answer.model_dump_json()
        measured = not_measured_headers(service.judges, call.requests, call.judges, verdicts)
        headers = {**timing_headers(timing), **measured}
        return Response(text, media_type="application/json", headers=headers)

    @router.post(
        "/judge/stream",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": EVENT}}}},
    )
    async def judge_stream(request: Request) -> Response:
        """Grade one request; events `critique` with pieces of text, then one `verdict`."""
        service.require_ready()
        deadline = deadline_of(request, service.limits)
        async with deadline.within():
            body = await request.body()
            call = await unless_gone(request, read_call(body, service, remote_images, parse_single))
        parts = with_heartbeat(service.stream(call.requests[0], call.judges[0], deadline=deadline))
        first = await unless_gone(request, anext(parts))  # an early refusal still has its status
        return EventSourceResponse(_events(first, parts))

    return router


def timing_headers(timing: Timing) -> dict[str, str]:
    """Return headers with the milliseconds that the slowest request waited, and was graded."""
    return {
        "X-Queue-Ms": f"{1000 * timing.queue:.1f}",
        "X-Inference-Ms": f"{1000 * timing.inference:.1f}",
    }


async def _events(
    first: str | Verdict | None, others: AsyncGenerator[str | Verdict | None]
) -> AsyncIterator[bytes]:
    """Yield events ``critique`` and ``verdict``, or ``error`` with the body of an error.

    Where there is nothing to say yet, a comment keeps the connection open. The data are ASCII, as
    many clients take further characters of Unicode (U+2028) for the end of a line.
    """
    try:
        yield _event(first)
        async for part in others:
            yield _event(part)
    except ApiError as error:
        yield format_sse_event(
            event="error", data_str=error.body().model_dump_json(ensure_ascii=True)
        )
    finally:
        await others.aclose()


def _event(part: str | Verdict | None) -> bytes:
    if part is None:
        return KEEPALIVE_COMMENT
    if isinstance(part, Verdict):
        return format_sse_event(event="verdict", data_str=part.model_dump_json(ensure_ascii=True))
    return format_sse_event(event="critique", data_str=json.dumps({"text": part}))
