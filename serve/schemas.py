"""The JSON Schemas of ``GET /tasks`` and ``GET /openapi.json``: what the routes take and give."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from judging import JudgeRequest, Verdict
from judging.tasks import JudgeTask, get_task
from serve.errors import ErrorBody
from serve.examples import known_choices, knows, task_example
from serve.limits import MAX_SEED
from serve.middleware.envelope import REQUEST_ID, REQUEST_ID_HEADER
from serve.middleware.ready import HEALTH_ROUTES
from serve.pictures.decode import FORMAT_NAMES
from serve.queue.service import Service
from serve.requests.images import DATA_URL

REF = "#/components/schemas/{model}"
ERRORS = {
    "401": "No access key, or an unknown one.",
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
REQUEST_ID_PARAMETER = {
    "name": REQUEST_ID_HEADER,
    "in": "header",
    "required": False,
    "description": "Sent back with the answer; names the call in the log.",
    "schema": {"type": "string", "pattern": f"^{REQUEST_ID.pattern}$"},
}


def task_schema(task: JudgeTask, service: Service) -> dict[str, Any]:
    """Return the JSON Schema of the requests that a service takes for a task."""
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
    fields["seed"] |= {"minimum": 0, "maximum": MAX_SEED}
    fields["images"] = {
        "type": "array",
        "items": {"type": "string", "pattern": f"^{DATA_URL.pattern}"},
        "maxItems": limits.images,
        "description": f"Data URLs, each of a {FORMAT_NAMES} picture.",
    }
    if not _takes_risk(task, service):
        del fields["risk"]
    if task.critique:
        fields["given_critique"]["anyOf"] = [text, {"type": "null"}]
    else:
        del fields["given_critique"]
    num = task.num_responses
    separate = list(task.response_fields)
    fields["responses"] = {"type": "array", "items": text, "minItems": num, "maxItems": num}
    fields.update(dict.fromkeys(separate, text))
    for name in task.required:
        is_text = fields[name]["type"] == "string"
        fields[name]["minLength" if is_text else "minItems"] = 1
    required = {"question", *task.required}
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


def describe_task(name: str, service: Service) -> dict[str, Any]:
    """Return one entry of ``GET /tasks``."""
    task = get_task(name)
    example = task_example(task, service.judges.values())
    return {
        "name": name,
        "judges": [key for key, judge in service.judges.items() if name in judge.tasks],
        "variants": served_variants(task, service),
        "labels": task.labels(task.rubric(JudgeRequest.model_validate(example))),
        "rubrics": {
            rubric: task.labels(rubric)
            for rubric in task.rows_by_rubric()
            if any(knows(judge, task, rubric) for judge in service.judges.values())
        },
        "modes": ["score", "critique"] if task.critique else ["score"],
        "schema": task_schema(task, service),
        "example": example,
    }


def served_variants(task: JudgeTask, service: Service) -> list[str]:
    """Return the variants of a task that at least one judge takes, in the task's order."""
    known = {
        choice["variant"]
        for judge in service.judges.values()
        for choice in known_choices(task, judge)
    }
    return [variant for variant in task.variants if variant in known]


def _takes_risk(task: JudgeTask, service: Service) -> bool:
    """Return whether a judge has thresholds for a stated risk under some rubric of a task."""
    return any(
        key.startswith(f"{task.name}/")
        for judge in service.judges.values()
        if judge.calibration
        for key in judge.calibration.held_out
    )


def served_tasks(service: Service) -> list[str]:
    """Return the names of the tasks that at least one judge takes."""
    return sorted({task for judge in service.judges.values() for task in judge.tasks})


def openapi(app: FastAPI, service: Service) -> dict[str, Any]:
    """Return the app's OpenAPI document, with the requests that the judges here take."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    _, definitions = models_json_schema(
        [(Verdict, "serialization"), (ErrorBody, "serialization")], ref_template=REF
    )
    components.setdefault("schemas", {}).update(definitions["$defs"])
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    tasks = served_tasks(service)
    single, lists = _judge_bodies(tasks, service)
    examples = {
        name: {"value": task_example(get_task(name), service.judges.values())} for name in tasks
    }
    paths = document["paths"]
    paths["/judge"]["post"]["requestBody"] = _body({"anyOf": [*single, *lists]}, examples)
    paths["/judge/stream"]["post"]["requestBody"] = _body({"anyOf": single}, examples)
    for path, operations in paths.items():
        if path in HEALTH_ROUTES:
            continue
        for operation in operations.values():
            operation["security"] = [{"key": []}]
            operation.setdefault("parameters", []).append(REQUEST_ID_PARAMETER)
            for status, description in ERRORS.items():
                operation["responses"][status] = _error(description)
    return document


def _judge_bodies(
    tasks: list[str], service: Service
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the schemas of a body with one request, by task, and of the two forms of a list."""
    requests = [task_schema(get_task(name), service) for name in tasks]
    description = "Default: the judge that knows the rubric best."
    judge = {"enum": list(service.judges), "description": description}
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


def _body(schema: dict[str, Any], examples: dict[str, Any]) -> dict[str, Any]:
    return {
        "required": True,
        "content": {"application/json": {"schema": schema, "examples": examples}},
    }


def _error(description: str) -> dict[str, Any]:
    schema = {"$ref": REF.format(model="ErrorBody")}
    return {"description": description, "content": {"application/json": {"schema": schema}}}
