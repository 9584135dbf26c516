"""``POST /judge`` and ``POST /judge/stream``."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from functools import lru_cache
from pathlib import Path
from string import punctuation
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import BaseModel

from evaluation.report.measured_tasks import unmeasured_tasks
from judging import Verdict
from serve.calls.errors import ApiError
from serve.calls.waiting import unless_gone, with_heartbeat
from serve.queue.intake import CheckedRequest
from serve.queue.service import Service, Timing
from serve.requests.parse import parse_call, parse_single, read_body, read_call

NOT_MEASURED_HEADER = "X-Not-Measured"
"""Header of an answer whose judge has no figures on the task."""
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
        first = await unless_gone(request, anext(parts))  # an early refusal still has its status
        return EventSourceResponse(_events(first, parts))

    return router


def not_measured_headers(
    requests: Iterable[CheckedRequest], verdicts: Iterable[Verdict]
) -> dict[str, str]:
    """Build the header that names judges and tasks without figures; empty if all have some.

    No judge was asked for what a rule decided. Characters that no header may hold are
    percent-encoded, as in an address.
    """
    asked = {
        (each.name, each.request.task): each.judge.folder
        for each, verdict in zip(requests, verdicts, strict=True)
        if verdict.posterior
    }
    texts = [
        f"{name} on {task}"
        for (name, task), folder in asked.items()
        if _lacks_figures(folder, task)
    ]
    return {NOT_MEASURED_HEADER: quote(", ".join(texts), safe=f"{punctuation} ")} if texts else {}


@lru_cache(maxsize=1024)
def _lacks_figures(folder: Path | None, task: str) -> bool:
    return bool(unmeasured_tasks(folder, (task,)))


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
        body = json.dumps(error.body(), separators=(",", ":"))
        yield format_sse_event(event="error", data_str=body)
    finally:
        await others.aclose()


def _event(part: str | Verdict | None) -> bytes:
    if part is None:
        return KEEPALIVE_COMMENT
    if isinstance(part, Verdict):
        return format_sse_event(event="verdict", data_str=part.model_dump_json(ensure_ascii=True))
    return format_sse_event(event="critique", data_str=json.dumps({"text": part}))
