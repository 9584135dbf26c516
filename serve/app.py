"""The HTTP service: every route on one app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from judging import Verdict
from serve.calls import parse_call, read_body
from serve.errors import add_error_handling
from serve.service import Service


class Verdicts(BaseModel):
    """Answer to a list of requests, in their order."""

    verdicts: tuple[Verdict, ...]


def create_app(service: Service) -> FastAPI:
    """Build the service's app.

    Args:
        service: What the routes share; closed with the app.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(title="custos", lifespan=lifespan, openapi_url=None)
    add_error_handling(app)

    @app.post("/judge")
    async def judge(request: Request) -> Response:
        body = await read_body(request, service.limits)
        call = await run_in_threadpool(parse_call, body, service)
        verdicts = await service.grade(call.requests, call.judges)
        answer = Verdicts(verdicts=verdicts) if call.is_list else verdicts[0]
        return Response(answer.model_dump_json(), media_type="application/json")

    @app.get("/judges")
    async def cards() -> Response:
        return JSONResponse(
            {
                "judges": [
                    {**judge.describe(), "name": name} for name, judge in service.judges.items()
                ]
            }
        )

    @app.get("/health/live")
    async def live() -> Response:
        return JSONResponse({"status": "live"})

    @app.get("/health/ready")
    async def ready() -> Response:
        if service.state != "ready":
            return JSONResponse({"status": service.state}, status_code=503)
        return JSONResponse({"status": "ready"})

    # Routes of the sub-packages: app.include_router(<package>.routes(service)), one line each.

    return app
