"""The pages for people: a playground with requests to try, the judges and figures, the queue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from evaluation.report.reliability import HEADING, REPORT_FILE, unmeasured_tasks
from evaluation.report.reliability import JSON as RELIABILITY
from judging.errors import CustosError
from judging.files.records import known_object
from judging.judge import Judge
from judging.judge.best_judge import Familiarity, choose_judge, familiarity
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, ReferenceMode
from serve.calls.context import caller_name
from serve.queue.service import Service

DEFAULT_TASK = JudgeRequest.model_fields["task"].default


def task_example(task: JudgeTask, judges: Iterable[Judge]) -> dict[str, Any]:
    """Choose a row of a task under a rubric that one of the judges knows.

    It is the task's own example if that fits, or if no judge knows any rubric.
    """
    judges = list(judges)
    for rubric, row in task.rows_by_rubric().items():
        if any(knows(judge, task, rubric) for judge in judges):
            return row
    return task.example_row()


def knows(judge: Judge, task: JudgeTask, rubric: str) -> bool:
    """Tell whether a judge was trained for a rubric, or is a zero-shot judge of the task."""
    return familiarity(judge, task.name, rubric) >= Familiarity.ZERO_SHOT


def known_choices(task: JudgeTask, judge: Judge) -> list[dict[str, str]]:
    """List the variants and reference modes of a task under which a judge takes requests."""
    rows = list(task.rows_by_rubric().values())

    def is_known(choice: Mapping[str, str]) -> bool:
        rubrics = {task.rubric(JudgeRequest.model_validate({**row, **choice})) for row in rows}
        return any(knows(judge, task, rubric) for rubric in rubrics)

    pairs = product(task.variants, get_args(ReferenceMode))
    choices = ({"variant": variant, "reference_mode": mode} for variant, mode in pairs)
    return list(filter(is_known, choices))


def headline_judge(judges: Mapping[str, Judge]) -> str:
    """Name the judge that grades a request which names neither task nor judge.

    Return the first judge if none takes such a request.
    """
    row = task_example(get_task(DEFAULT_TASK), judges.values())
    try:
        return choose_judge(judges, JudgeRequest.model_validate(row))
    except CustosError:
        return next(iter(judges))


def headline_example(judges: Mapping[str, Judge]) -> dict[str, Any]:
    """Choose a row for the headline judge, of a task that it was measured on if there is one."""
    judge = judges[headline_judge(judges)]
    unmeasured = unmeasured_tasks(judge.folder, judge.tasks)
    names = [task for task in judge.tasks if task not in unmeasured] or list(judge.tasks)
    name = DEFAULT_TASK if DEFAULT_TASK in names else names[0]
    return task_example(get_task(name), [judge])


def warm_up(judge: Judge) -> None:
    """Have a judge grade an example, as a first forward pass takes longer than all others."""
    row = {**headline_example({judge.name: judge}), "critique_tokens": 1}
    list(judge.grade([JudgeRequest.model_validate(row)]))


def served_tasks(judges: Mapping[str, Judge]) -> list[str]:
    """Name the tasks that at least one judge takes."""
    return sorted({task for judge in judges.values() for task in judge.tasks})


FOLDER = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MEASURES = {"accuracy": "accuracy", "kappa": "kappa", "mcc": "MCC", "fpr": "FPR", "ece": "ECE"}
HEADLINE = {key: MEASURES[key] for key in ("accuracy", "kappa", "ece")}
"""What the line of a judge shows."""
RELIABILITY_MEASURES = ("accuracy", "kappa", "macro_f1", "ece")
BASELINES = (
    "logistic_overlap",
    "sentence_embeddings",
    "containment",
    "majority_label",
    "zero_shot",
)


def routes(service: Service, *, has_keys: bool = False) -> APIRouter:
    """Build the routes of a service's pages.

    With ``has_keys`` the calls to copy show the key's header. A browser asks its user for a key, as
    the password of HTTP Basic, and sends it with every call of the pages.
    """
    router = APIRouter(include_in_schema=False)
    loader = FileSystemLoader(FOLDER / "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    templates = Jinja2Templates(env=environment)

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
                name: {
                    task: {
                        "choices": known_choices(get_task(task), judge),
                        "example": task_example(get_task(task), [judge]),
                    }
                    for task in judge.tasks
                }
                for name, judge in service.judges.items()
            },
            "headline": {
                "judge": headline_judge(service.judges),
                "task": headline_example(service.judges)["task"],
            },
            "tasks": {
                task.name: {
                    "variants": task.variants,
                    "pair": task.num_responses == 2,
                    "critique": task.critique is not None,
                    "modes": task.has_reference_modes,
                    "required": task.required,
                }
                for task in map(get_task, served_tasks(service.judges))
            },
            "max_images": service.limits.images,
            "has_keys": has_keys,
        }

    @router.get("/")
    async def playground(request: Request) -> Response:
        return page(request, "playground", settings=settings())

    @cache
    def cards() -> list[dict[str, Any]]:
        return [card(name, judge) for name, judge in service.judges.items()]

    @router.get("/pages/judges")
    async def judges(request: Request) -> Response:
        return page(request, "judges", cards=cards(), measures=list(HEADLINE.values()))

    @router.get("/pages/queue")
    async def queue(request: Request) -> Response:
        return page(request, "queue", queue=service.queue(caller_name()), state=service.state)

    @router.get("/pages/queue.json")
    async def queue_state() -> JSONResponse:
        return JSONResponse({**asdict(service.queue(caller_name())), "state": service.state})

    router.mount("/pages/static", StaticFiles(directory=FOLDER / "static"))
    return router


def card(name: str, judge: Judge) -> dict[str, Any]:
    """Describe a judge: its tasks, what its fingerprint is made of, and what its report measured.

    Without a report in the judge's folder nothing is shown as measured. ``name`` is what clients
    call it.
    """
    description = judge.describe()
    packages = description.pop("packages")
    report: dict[str, Any] = {}
    reliability: dict[str, Any] = {}
    notes: list[list[str]] = []
    if judge.folder:
        reliability = _reliability(known_object(judge.folder / RELIABILITY))
        with suppress(OSError, ValueError):
            readme = (judge.folder / "README.md").read_text(encoding="utf-8")
            report = known_object(judge.folder / REPORT_FILE)
            notes = _paragraphs(readme.partition(HEADING)[0]) if report else []
    # A paragraph of its card begins with "LoRA judge on ... for ...".
    about = next((note for note in notes if note[0].startswith("LoRA judge")), ())
    sentence = re.split(r"(?<=[.?]) ", "".join(about))[0]
    attacks = [each for each in reliability.get("attacks", ()) if each["is_attack"]]
    return {
        "name": name,
        "tasks": list(judge.tasks),
        "figures": [_cell(report["metrics"].get(key)) for key in HEADLINE] if report else [],
        "worst": max(attacks, key=lambda each: each["rate"], default=None),
        "facts": {
            key: value
            for key, value in {**description, **packages}.items()
            if key not in ("name", "tasks", "instructions") and value not in (None, "")
        },
        "unmeasured": unmeasured_tasks(judge.folder, judge.tasks) if report else [],
        "n": report.get("n"),
        "rows": _rows(judge.name, report) if report else [],
        "measures": list(MEASURES.values()),
        "notes": notes,
        "cautions": [*report.get("cautions", ()), *reliability.get("cautions", ())],
        "about": sentence.partition(" for ")[2],
        "reliability": reliability,
    }


def _reliability(known: dict[str, Any]) -> dict[str, Any]:
    """Format the cells of a reliability card; empty if there is none."""
    return known and {
        "data": [
            {
                "name": name,
                "cells": [
                    (f"{measured['n']:,}", ""),
                    *(_cell(measured["metrics"].get(key)) for key in RELIABILITY_MEASURES),
                    _cell((measured["abstention"] or {}).get("kept")),
                    _cell((measured["abstention"] or {}).get("error")),
                    (_seconds(measured["seconds_per_1000"]), ""),
                ],
            }
            for name, measured in known["data"].items()
        ],
        "attacks": [
            {
                "name": family.replace("_", " "),
                "is_attack": kind == "attacks",
                "rate": measured["called_correct"]["value"] or 0,
                "cells": [
                    (f"{measured['called_correct']['n']:,}", ""),
                    _cell(measured["called_correct"]),
                    ("0" if kind == "attacks" else "1", ""),
                ],
            }
            for kind in ("attacks", "controls")
            for family, measured in ((known["attacks"] or {}).get(kind) or {}).items()
        ],
        "cautions": [
            f"{name}: {text}"
            for name, measured in known["data"].items()
            for text in measured["cautions"]
        ],
        "not_measured": known["not_measured"],
    }


def _rows(name: str, report: dict[str, Any]) -> list[dict[str, Any]]:
    metrics_by_name = {name: report["metrics"]} | {
        baseline.replace("_", " "): report["baselines"][baseline]
        for baseline in BASELINES
        if baseline in report["baselines"]
    }
    return [
        {"name": row_name, "cells": [_cell(metrics.get(key)) for key in MEASURES]}
        for row_name, metrics in metrics_by_name.items()
    ]


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.0f} s"


def _cell(metric: dict[str, Any] | None) -> tuple[str, str]:
    """Format a value and its interval, or what chance may give; a dash if there is no value."""
    if not metric or metric["value"] is None:
        return "–", ""
    if chance := metric.get("chance"):
        return f"{metric['value']:.3f}", f"up to {chance['high']:.3f}"
    if metric["low"] is None:
        return f"{metric['value']:.3f}", ""
    return f"{metric['value']:.3f}", f"[{metric['low']:.3f}, {metric['high']:.3f}]"


def _paragraphs(card_text: str) -> list[list[str]]:
    """Split the plain paragraphs of a model card into text and code in turn, text first.

    Its table is left out, as it is made from the report.
    """
    blocks = [block for block in card_text.split("\n\n") if block and block[0] not in "#|`"]
    paragraphs = [
        block for block in blocks if not block.startswith("Measured on") and block[-1] != ":"
    ]
    return [" ".join(block.replace("**", "").split()).split("`") for block in paragraphs]
