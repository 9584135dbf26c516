"""The HTTP service: ``POST /judge``, ``GET /judges`` and health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from judging import CustosError, Judge, Verdict
from serve.calls import Call, parse_call, read_body
from serve.errors import add_error_handling
from serve.worker import Worker

MAX_CALLS = 64


class Verdicts(BaseModel):
    """Answer to a list of requests, in their order."""

    verdicts: tuple[Verdict, ...]


def create_app(judges: Mapping[str, Judge], *, max_calls: int = MAX_CALLS) -> FastAPI:
    """Build the service.

    Args:
        judges: Loaded judges by the name clients call them. A request that names none goes to the
            first that takes its task.
        max_calls: Most calls in hand at once; further ones are answered 429.

    Raises:
        CustosError: If there is no judge.
    """
    if not judges:
        raise CustosError("a service needs at least one judge")
    worker = Worker(max_calls)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        worker.close()

    app = FastAPI(title="custos", lifespan=lifespan, openapi_url=None)
    add_error_handling(app)

    @app.post("/judge")
    async def judge(request: Request) -> Response:
        with worker.place():
            call = await run_in_threadpool(parse_call, await read_body(request), judges)
            verdicts = await worker.run(lambda: grade_call(call, judges))
        answer = Verdicts(verdicts=verdicts) if call.is_list else verdicts[0]
        return Response(answer.model_dump_json(), media_type="application/json")

    @app.get("/judges")
    async def cards() -> Response:
        return JSONResponse(
            {"judges": [{**judge.describe(), "name": name} for name, judge in judges.items()]}
        )

    @app.get("/health/live")
    async def live() -> Response:
        return JSONResponse({"status": "live"})

    @app.get("/health/ready")
    async def ready() -> Response:
        if worker.is_full:
            return JSONResponse({"status": "overloaded"}, status_code=503)
        return JSONResponse({"status": "ready"})

    return app


def grade_call(call: Call, judges: Mapping[str, Judge]) -> tuple[Verdict, ...]:
    """Grade a call's requests, each judge's together; verdicts in the order of the requests."""
    verdicts: dict[int, Verdict] = {}
    for name in dict.fromkeys(call.judges):
        rows = [row for row, chosen in enumerate(call.judges) if chosen == name]
        graded = judges[name].grade([call.requests[row] for row in rows])
        verdicts.update(zip(rows, graded, strict=True))
    return tuple(verdicts[row] for row in range(len(call.requests)))
