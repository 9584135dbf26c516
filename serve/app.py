"""The HTTP service: every route and every middleware on one app."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.middleware.authentication import AuthenticationMiddleware

from evaluation.report.measured_tasks import measured_lines
from serve import chat, pages, requests
from serve.call_context import caller_name
from serve.errors import add_error_handling
from serve.keys import KnownKeys
from serve.limits import CallLimits
from serve.middleware.access_keys import AccessKeys
from serve.middleware.body_limits import BodyLimits
from serve.middleware.contents import LogContents
from serve.middleware.envelope import Envelope
from serve.middleware.json_bodies import RequireJson
from serve.middleware.other_sites import RefuseOtherSites
from serve.middleware.ready import RequireJudges
from serve.middleware.wrong_keys import WrongKeys
from serve.operator import text_of_metrics
from serve.queue.service import Service
from serve.requests.remote_images import RemoteImages
from serve.schemas import describe_task, openapi, served_tasks
from serve.threads import started_threads


class Health(BaseModel):
    """``ready``, or why the service is not."""

    status: str


class ServedJudges(BaseModel):
    """The judges that are served, and the limits on a call to them."""

    judges: list[dict[str, Any]]
    limits: CallLimits


def create_app(
    service: Service,
    *,
    keys: KnownKeys | None = None,
    aliases: Mapping[str, str] | None = None,
    only_local: bool = False,
    remote_images: RemoteImages | None = None,
    log_contents: bool = False,
) -> FastAPI:
    """Build the service's app.

    Args:
        service: What the routes share; closed with the app.
        keys: Access keys. Without, every route is open, but not to pages of other sites.
        aliases: From a model name that chat clients cannot change to the model that answers.
        only_local: Without keys, answer only under names of this machine.
        remote_images: Fetches pictures by their address; without, only data URLs are taken.
        log_contents: Write questions and answers to the log.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        from PIL import Image

        asyncio.get_running_loop().set_default_executor(started_threads())
        # Such a picture is refused. Pillow would write two lines for each, and remember them.
        warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
        yield
        service.stop()
        await service.intake.close()
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="custos",
        version="1",
        description="Judges that grade answers the way people do.",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would name the host that the caller does
    )
    add_error_handling(app)
    # The last one added is the first to see a call.
    if log_contents:
        app.add_middleware(LogContents)
    app.add_middleware(BodyLimits, limits=service.limits)
    app.add_middleware(RequireJson)
    app.add_middleware(RequireJudges, service=service)
    if keys:
        app.add_middleware(
            AuthenticationMiddleware, backend=AccessKeys(keys), on_error=WrongKeys().answer
        )
    else:
        app.add_middleware(RefuseOtherSites, only_local=only_local)
    app.add_middleware(Envelope, metrics=service.metrics)

    app.include_router(requests.routes(service, remote_images))
    app.include_router(chat.routes(service, aliases, remote_images))
    app.include_router(pages.routes(service, has_keys=keys is not None))
    _add_descriptions(app, service)
    return app


def _add_descriptions(app: FastAPI, service: Service) -> None:
    """Add the routes that tell what is served, and how the service is."""

    @cache  # Judges never change, and no other call is answered while this is made.
    def described_tasks() -> list[dict[str, Any]]:
        return [describe_task(name, service) for name in served_tasks(service)]

    @cache
    def described_routes() -> dict[str, Any]:
        return openapi(app, service)

    @app.get("/judges")
    async def judges() -> ServedJudges:
        """Return the judges here, what was measured of them, and the limits on a call."""
        cards = [
            {
                **judge.describe(),
                "name": name,
                "measured": measured_lines(name, judge.folder, judge.tasks),
            }
            for name, judge in service.judges.items()
        ]
        return ServedJudges(judges=cards, limits=service.limits.of_a_call())

    @app.get("/tasks", response_model=dict[str, list[dict[str, Any]]])
    async def tasks() -> Response:
        """Return the tasks judged here, each with its JSON Schema and an example."""
        return JSONResponse({"tasks": described_tasks()})

    @app.head("/health/live", include_in_schema=False)  # as monitors ask
    @app.get("/health/live", response_model=Health)
    async def live() -> Health:
        """Answer, as long as the process can."""
        return Health(status="live")

    @app.head("/health", include_in_schema=False)
    @app.head("/health/ready", include_in_schema=False)
    @app.get("/health", response_model=Health, responses={503: {"model": Health}})
    @app.get("/health/ready", response_model=Health, responses={503: {"model": Health}})
    async def ready() -> Response:
        """Say whether new requests are accepted."""
        status: str = service.state if service.is_alive else "stopped"
        if service.is_stalled:
            status = "stalled"
        return JSONResponse({"status": status}, status_code=200 if status == "ready" else 503)

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        """Give counters to Prometheus: of the calls with this key, or of all where none has one."""
        caller = caller_name()
        shown = service.metrics.of_key(caller) if caller else service.metrics
        return text_of_metrics(shown)

    @app.get("/openapi.json", include_in_schema=False)
    async def document() -> Response:
        return JSONResponse(described_routes())
