"""The pages' routes. HTML is made here; scripts and styles are files of this folder alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from judging.tasks import get_task
from serve.errors import ApiError
from serve.pages.cards import card
from serve.queue.service import Service
from serve.schemas import served_tasks, task_example

FOLDER = Path(__file__).parent
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def routes(service: Service, *, has_keys: bool = False) -> APIRouter:
    """The pages of a service.

    With access keys a browser asks for one itself, as the password of HTTP Basic, and sends it with
    everything the pages ask for.

    Args:
        service: What the other routes share.
        has_keys: Show the key's header in the calls to copy.
    """
    router = APIRouter(include_in_schema=False)
    templates = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined
    )
    files = {path.name: path for path in (FOLDER / "static").iterdir()}

    def page(name: str, **values: Any) -> HTMLResponse:
        html = templates.get_template(f"{name}.html").render(page=name, **values)
        return HTMLResponse(html, headers={"Content-Security-Policy": POLICY})

    @router.get("/")
    async def playground() -> HTMLResponse:
        asked = {
            "judges": {name: judge.describe()["tasks"] for name, judge in service.judges.items()},
            "tasks": {name: _task(name) for name in served_tasks(service)},
            "images": service.limits.images,
            "has_keys": has_keys,
        }
        return page("playground", asked=asked)

    @router.get("/pages/judges")
    async def judges() -> HTMLResponse:
        return page("judges", cards=[card(name, one) for name, one in service.judges.items()])

    @router.get("/pages/queue")
    async def queue() -> HTMLResponse:
        return page("queue", queue=service.queue(), state=service.state)

    @router.get("/pages/queue.json")
    async def queue_now() -> JSONResponse:
        return JSONResponse({**asdict(service.queue()), "state": service.state})

    @router.get("/pages/static/{name}")
    async def static(name: str) -> Response:
        if name not in files:
            raise ApiError(404, "no such file")
        return Response(files[name].read_bytes(), media_type=MEDIA_TYPES[files[name].suffix])

    return router


def _task(name: str) -> dict[str, Any]:
    """What the playground's form must know of a task."""
    task = get_task(name)
    return {
        "variants": task.variants,
        "pair": task.num_responses == 2,
        "critique": task.critique is not None,
        "references": "references" in task.required,
        "example": task_example(task),
    }
