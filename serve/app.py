"""The HTTP service: all routes on one app behind the gate, and those that describe it."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from evaluation.report.reliability import measured_lines
from judging import JudgeRequest, Verdict
from judging.tasks import JudgeTask, get_task
from serve.calls.context import caller_name
from serve.calls.errors import ErrorBody, add_error_handling
from serve.calls.limits import MAX_SEED, CallLimits
from serve.calls.waiting import started_threads
from serve.chat.routes import routes as chat_routes
from serve.gate.gate import HEALTH_ROUTES, REQUEST_ID, REQUEST_ID_HEADER, Gate, KnownKeys
from serve.pages.routes import known_choices, knows, served_tasks, task_example
from serve.pages.routes import routes as page_routes
from serve.pictures.decode import FORMAT_NAMES
from serve.pictures.received import DATA_URL
from serve.queue.service import Service
from serve.requests.parse import routes as judge_routes

CLOSE_S = 20.0
"""Longest wait for the model's thread, and then for the cache, as the service ends."""
REF = "#/components/schemas/{model}"
ERRORS = {
    "401": "No access key, or an unknown one.",
    "403": "Without keys: called by a page of another site, or not under the name localhost.",
    "404": "There is no such judge or route.",
    "408": "The body came too slowly.",
    "413": "The body is too large or has too many values.",
    "415": "The body is not called JSON.",
    "422": "This route does not take the body; `field` says what is wrong with it.",
    "429": "Too much is waiting; `Retry-After` says when to try again.",
    "500": "A fault of the service.",
    "503": "Starting or draining, or the model's server fails.",
    "504": "The deadline is over.",
}


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
    log_contents: bool = False,
) -> FastAPI:
    """Build the service's app around a service, which is closed with it.

    Without keys every route is open, but not to pages of other sites; ``only_local`` then answers
    only under names of this machine. An alias maps a model name that chat clients cannot change to
    the model that answers. ``log_contents`` writes questions and answers to the log.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        from PIL import Image

        loop = asyncio.get_running_loop()
        loop.set_default_executor(started_threads())
        # Such a picture is refused. Pillow would write two lines for each, and remember them.
        warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
        yield
        service.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(service.intake.close(), asyncio.to_thread(service.close))
        # The loop waits for its threads, of which one may read a long text or a file that hangs.
        loop.set_default_executor(ThreadPoolExecutor())

    app = FastAPI(
        title="custos",
        version="1",
        description="Judges that grade answers the way people do.",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would name the host that the caller does
    )
    add_error_handling(app)
    app.add_middleware(
        Gate, service=service, keys=keys, only_local=only_local, log_contents=log_contents
    )
    app.include_router(judge_routes(service))
    app.include_router(chat_routes(service, aliases))
    app.include_router(page_routes(service, has_keys=keys is not None))
    _add_descriptions(app, service)
    return app


def _add_descriptions(app: FastAPI, service: Service) -> None:
    """Add the routes that describe judges, tasks and the state of the service."""

    # Judges never change, and no other call is answered while one of these is made.
    @cache
    def described_judges() -> bytes:
        cards = [
            {
                **judge.describe(),
                "name": name,
                "measured": measured_lines(name, judge.folder, judge.tasks, judge.backbone.name),
            }
            for name, judge in service.judges.items()
        ]
        judges = ServedJudges(judges=cards, limits=service.limits)
        return bytes(JSONResponse(judges.model_dump(mode="json")).body)

    @cache
    def described_tasks() -> bytes:
        tasks = [describe_task(name, service) for name in served_tasks(service.judges)]
        return bytes(JSONResponse({"tasks": tasks}).body)

    @cache
    def described_routes() -> bytes:
        return bytes(JSONResponse(openapi(app, service)).body)

    def made_json(content: bytes) -> Response:
        return Response(content, media_type="application/json")

    @app.get("/judges", response_model=ServedJudges)
    async def judges() -> Response:
        """Return the judges here, what was measured of them, and the limits on a call."""
        return made_json(described_judges())

    @app.get("/tasks", response_model=dict[str, list[dict[str, Any]]])
    async def tasks() -> Response:
        """Return the tasks judged here, each with its JSON Schema and an example."""
        return made_json(described_tasks())

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
        status = service.health
        return JSONResponse({"status": status}, status_code=200 if status == "ready" else 503)

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        """Give counters to Prometheus: of the calls with this key, or of all where none has one."""
        caller = caller_name()
        return (service.metrics.of_key(caller) if caller else service.metrics).response()

    @app.get("/openapi.json", include_in_schema=False)
    async def document() -> Response:
        return made_json(described_routes())


def describe_task(name: str, service: Service) -> dict[str, Any]:
    """Return one entry of ``GET /tasks``."""
    task, judges = get_task(name), service.judges
    example = task_example(task, judges.values())
    return {
        "name": name,
        "judges": [key for key, judge in judges.items() if name in judge.tasks],
        "variants": served_variants(task, service),
        "labels": task.labels(task.rubric(JudgeRequest.model_validate(example))),
        "rubrics": {
            rubric: task.labels(rubric)
            for rubric in task.rows_by_rubric()
            if any(knows(judge, task, rubric) for judge in judges.values())
        },
        "modes": ["score", "critique"] if task.critique else ["score"],
        "schema": task_schema(task, service),
        "example": example,
    }


def served_variants(task: JudgeTask, service: Service) -> list[str]:
    """List the variants of a task that at least one judge takes, in the task's order."""
    known = {
        choice["variant"]
        for judge in service.judges.values()
        for choice in known_choices(task, judge)
    }
    return [variant for variant in task.variants if variant in known]


def task_schema(task: JudgeTask, service: Service) -> dict[str, Any]:
    """Build the JSON Schema of the requests that a service takes for a task."""
    limits, variants = service.limits, served_variants(task, service)
    schema = JudgeRequest.model_json_schema()
    fields: dict[str, Any] = schema["properties"]
    text = {"type": "string", "maxLength": limits.field_chars}
    fields["task"] = {"const": task.name, "default": fields["task"]["default"]}
    fields["variant"] = {"enum": variants, "default": fields["variant"]["default"]}
    fields["mode"] = {"enum": ["score", "critique"] if task.critique else ["score"]}
    for field in fields.values():
        if field.get("type") == "array":
            field["maxItems"] = limits.items
    for name in ("references", "criteria"):
        fields[name] |= {**text, "type": ["array", "string"]}
    fields["seed"] |= {"minimum": 0, "maximum": MAX_SEED}
    address, are_addresses = "", ""
    if service.remote_images:
        address, are_addresses = "|https:", " or https addresses of hosts that are allowed here,"
    fields["images"] = {
        "type": "array",
        "items": {"type": "string", "pattern": f"^(?:{DATA_URL.pattern}{address})"},
        "maxItems": limits.images,
        "description": f"Data URLs,{are_addresses} each of a {FORMAT_NAMES} picture.",
    }
    if task.critique:
        fields["given_critique"]["anyOf"] = [text, {"type": "null"}]
    else:
        del fields["given_critique"]
    num = task.num_responses
    separate = list(task.response_fields)
    fields["responses"] = {"type": "array", "items": text, "minItems": num, "maxItems": num}
    fields.update(dict.fromkeys(separate, text))
    for name in task.required:
        fields[name] |= {"minLength": 1, "minItems": 1}  # as a text, and as a list
    required = set(task.required)
    if task.name != fields["task"]["default"]:
        required.add("task")
    if fields["variant"]["default"] not in variants:
        required.add("variant")
    return {
        "type": "object",
        "title": task.name,
        "properties": fields,
        "required": sorted(required),
        "oneOf": [{"required": ["responses"]}, {"required": separate}],
        "additionalProperties": False,
        "maxProperties": limits.items,
    }


def openapi(app: FastAPI, service: Service) -> dict[str, Any]:
    """Build the app's OpenAPI document, with the requests that the judges here take."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    components = document.setdefault("components", {})
    _, definitions = models_json_schema(
        [(Verdict, "serialization"), (ErrorBody, "serialization")], ref_template=REF
    )
    components.setdefault("schemas", {}).update(definitions["$defs"])
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    paths = document["paths"]
    tasks = [get_task(name) for name in served_tasks(service.judges)]
    single, lists = _judge_bodies(tasks, service)
    examples = {task.name: {"value": task_example(task, service.judges.values())} for task in tasks}
    for path, schemas in (("/judge", [*single, *lists]), ("/judge/stream", single)):
        content = {"schema": {"anyOf": schemas}, "examples": examples}
        paths[path]["post"]["requestBody"] = {
            "required": True,
            "content": {"application/json": content},
        }
    request_id = {
        "name": REQUEST_ID_HEADER,
        "in": "header",
        "required": False,
        "description": "Sent back with the answer; names the call in the log.",
        "schema": {"type": "string", "pattern": f"^{REQUEST_ID.pattern}$"},
    }
    error = {"application/json": {"schema": {"$ref": REF.format(model="ErrorBody")}}}
    for path, operations in paths.items():
        if path in HEALTH_ROUTES:
            continue
        for operation in operations.values():
            operation["security"] = [{"key": []}]
            operation.setdefault("parameters", []).append(request_id)
            for status, description in ERRORS.items():
                operation["responses"][status] = {"description": description, "content": error}
    return document


def _judge_bodies(
    tasks: list[JudgeTask], service: Service
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Build the schemas of a body with one request, by task, and of the two forms of a list."""
    description = "Default: the judge that knows the rubric best."
    judge = {"enum": list(service.judges), "description": description}
    requests = [task_schema(task, service) for task in tasks]
    single = [
        {**request, "properties": {**request["properties"], "judge": judge}} for request in requests
    ]
    array = {
        "type": "array",
        "title": "list",
        "items": {"anyOf": single},
        "maxItems": service.limits.requests,
    }
    named = {
        "type": "object",
        "title": "named list",
        "properties": {"requests": array, "judge": judge},
        "required": ["requests"],
        "additionalProperties": False,
    }
    return single, [array, named]
