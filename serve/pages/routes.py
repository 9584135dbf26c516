"""The routes of the pages. All scripts and styles are files of this folder."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from judging.judge import Judge
from judging.tasks import JudgeTask, get_task
from serve.call_context import caller_name
from serve.examples import headline_example, headline_judge, known_choices, task_example
from serve.pages.cards import card
from serve.queue.service import Service
from serve.schemas import served_tasks

FOLDER = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def routes(service: Service, *, has_keys: bool = False) -> APIRouter:
    """Return the routes of a service's pages.

    If the service has access keys, a browser asks its user for one, as the password of HTTP Basic,
    and sends it with every call of the pages.

    Args:
        service: What the other routes share.
        has_keys: Show the key's header in the calls to copy.
    """
    router = APIRouter(include_in_schema=False)
    loader = FileSystemLoader(FOLDER / "templates")
    templates = Jinja2Templates(
        env=Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    )

    def page(request: Request, name: str, **values: Any) -> Response:
        return templates.TemplateResponse(
            request,
            f"{name}.html",
            {"page": name, **values},
            headers={"Content-Security-Policy": POLICY},
        )

    @cache
    def settings() -> dict[str, Any]:
        return {
            "judges": {
                name: {task: _offer(get_task(task), judge) for task in judge.tasks}
                for name, judge in service.judges.items()
            },
            "headline": _headline(service),
            "tasks": {name: _task_fields(name) for name in served_tasks(service)},
            "max_images": service.limits.images,
            "has_keys": has_keys,
        }

    @router.get("/")
    async def playground(request: Request) -> Response:
        return page(request, "playground", settings=settings())

    @router.get("/pages/judges")
    async def judges(request: Request) -> Response:
        cards = [card(name, judge) for name, judge in service.judges.items()]
        return page(request, "judges", cards=cards)

    @router.get("/pages/queue")
    async def queue(request: Request) -> Response:
        return page(request, "queue", queue=service.queue(caller_name()), state=service.state)

    @router.get("/pages/queue.json")
    async def queue_state() -> JSONResponse:
        return JSONResponse({**asdict(service.queue(caller_name())), "state": service.state})

    router.mount("/pages/static", StaticFiles(directory=FOLDER / "static"))
    return router


def _headline(service: Service) -> dict[str, str]:
    """Return the judge and the task that the playground opens on."""
    return {
        "judge": headline_judge(service.judges),
        "task": headline_example(service.judges)["task"],
    }


def _offer(task: JudgeTask, judge: Judge) -> dict[str, Any]:
    """Return what a judge takes of a task: choices of variant and reference mode, an example."""
    return {"choices": known_choices(task, judge), "example": task_example(task, [judge])}


def _task_fields(name: str) -> dict[str, Any]:
    """Return what the playground must know to show the fields of a task."""
    task = get_task(name)
    return {
        "variants": task.variants,
        "pair": task.num_responses == 2,
        "critique": task.critique is not None,
        "references": "references" in task.required,
        "modes": task.has_reference_modes,
    }
