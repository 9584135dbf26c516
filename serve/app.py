"""The HTTP service: every route on one app."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from judging import Verdict
from serve import chat, pages
from serve.errors import ApiError, add_error_handling
from serve.middleware.envelope import Bodies, Envelope, Keys, WhenOpen, request_id
from serve.middleware.other_sites import Visitors
from serve.queue.service import Service, Timing
from serve.requests.parse import deadline_of, parse_call, parse_one, unless_gone
from serve.schemas import describe_task, openapi, served_tasks

logger = logging.getLogger("custos.serve")

INLINE_BYTES = 64_000
"""Bodies up to this size are parsed on the event loop: faster than a change of thread."""


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


class Health(BaseModel):
    """``ready``, or what keeps it from being so."""

    status: str


def create_app(
    service: Service,
    *,
    keys: Sequence[str] = (),
    aliases: Mapping[str, str] | None = None,
    only_local: bool = False,
) -> FastAPI:
    """Build the service's app.

    Args:
        service: What the routes share; closed with the app.
        keys: Access keys; with none, every route is open, but not to pages of other sites.
        aliases: A model name that chat clients cannot change, to the model that answers under it.
        only_local: Without keys, answer only under this machine's own names.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(
        title="custos",
        version="1",
        description="Judges that grade answers the way people do.",
        lifespan=lifespan,
        openapi_url=None,
    )
    add_error_handling(app)
    app.add_middleware(Bodies, limits=service.limits)
    app.add_middleware(WhenOpen, service=service)
    if keys:
        app.add_middleware(Keys, keys=keys)
    else:
        app.add_middleware(Visitors, only_local=only_local)
    app.add_middleware(Envelope, metrics=service.metrics)

    @app.post("/judge", response_model=Verdict | Verdicts)
    async def judge(request: Request) -> Response:
        """Grade one request, or a list of them.

        The header `X-Deadline-Ms` says how long the caller will wait; then the answer is 504.
        """
        service.require_ready()
        body = await request.body()
        deadline = deadline_of(request)
        call = (
            parse_call(body, service)
            if len(body) <= INLINE_BYTES and service.remote_images is None
            else await run_in_threadpool(parse_call, body, service)
        )
        timing = Timing()
        verdicts = await unless_gone(
            request,
            service.grade(call.requests, call.judges, deadline=deadline, timing=timing),
        )
        answer = Verdicts(verdicts=verdicts) if call.is_list else verdicts[0]
        text = answer.model_dump_json()
        if service.log_contents:
            _log_contents(body, text)
        return Response(text, media_type="application/json", headers=timing_headers(timing))

    @app.post(
        "/judge/stream",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": EVENT}}}},
    )
    async def judge_stream(request: Request) -> Response:
        """Grade one request; events `critique` with pieces of text, then one `verdict`."""
        service.require_ready()
        body = await request.body()
        deadline = deadline_of(request)
        one, name = await run_in_threadpool(parse_one, body, service)
        events = service.stream(one, name, deadline=deadline)
        first = await unless_gone(request, anext(events))  # what is refused is still refused
        return StreamingResponse(
            _server_sent(first, events, body if service.log_contents else None),
            media_type="text/event-stream",
        )

    @app.get("/judges", response_model=dict[str, list[dict[str, Any]]])
    async def cards() -> Response:
        """The judges here, with their cards."""
        return JSONResponse(
            {"judges": [{**one.describe(), "name": name} for name, one in service.judges.items()]}
        )

    @app.get("/tasks", response_model=dict[str, list[dict[str, Any]]])
    async def tasks() -> Response:
        """The tasks judged here, each with its JSON Schema and an example."""
        return JSONResponse(
            {"tasks": [describe_task(name, service) for name in served_tasks(service)]}
        )

    @app.get("/health/live", response_model=Health)
    async def live() -> Health:
        """Whether the process answers."""
        return Health(status="live")

    @app.get("/health/ready", response_model=Health, responses={503: {"model": Health}})
    async def ready() -> Response:
        """Whether new requests are accepted."""
        status = service.state if service.is_alive else "stopped"
        return JSONResponse({"status": status}, status_code=200 if status == "ready" else 503)

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    # Routes of the sub-packages: app.include_router(<package>.routes(service)), one line each.
    app.include_router(chat.routes(service, aliases))
    app.include_router(pages.routes(service, has_keys=bool(keys)))

    @app.get("/openapi.json", include_in_schema=False)
    async def document() -> Response:
        return JSONResponse(openapi(app, service))

    return app


def timing_headers(timing: Timing) -> dict[str, str]:
    """How long the slowest request waited, and was before the model, in milliseconds."""
    return {
        "X-Queue-Ms": f"{1000 * timing.queue:.1f}",
        "X-Inference-Ms": f"{1000 * timing.inference:.1f}",
    }


async def _server_sent(
    first: str | Verdict, rest: AsyncGenerator[str | Verdict], logged: bytes | None
) -> AsyncIterator[str]:
    """Events ``critique`` and ``verdict``, or ``error`` with the body of an error."""
    try:
        yield _event(first)
        async for item in rest:
            yield _event(item)
            if logged and isinstance(item, Verdict):
                _log_contents(logged, item.model_dump_json())
    except ApiError as error:
        yield f"event: error\ndata: {error.body().model_dump_json()}\n\n"
    finally:
        await rest.aclose()


def _event(item: str | Verdict) -> str:
    if isinstance(item, Verdict):
        return f"event: verdict\ndata: {item.model_dump_json()}\n\n"
    return f"event: critique\ndata: {json.dumps({'text': item})}\n\n"


def _log_contents(asked: bytes, answered: str) -> None:
    logger.info(
        "request %s asked %s answered %s",
        request_id.get(),
        asked.decode(errors="replace"),
        answered,
    )
