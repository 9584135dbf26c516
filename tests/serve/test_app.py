"""Routes that tell what is served, and routes that are not there."""

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from jsonschema_rs import validator_for

from evaluation.report.reliability import measured_lines
from judging.judge import Judge
from judging.judge.card import SHIPPED, read_card, shipped_judges
from judging.tasks import get_task, task_names
from serve.app import create_app, openapi, task_schema
from serve.calls.limits import CallLimits, Limits
from serve.gate.gate import HEALTH_ROUTES
from serve.pages.routes import headline_example, headline_judge, task_example, warm_up
from serve.pictures.received import RemoteImages
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, card_of, row
from tests.serve.sockets import serving


def test_unknown_routes_have_the_same_shape(client: TestClient) -> None:
    error = client.post("/chat/completions", json={}).json()["error"]
    assert error["type"] == "not_found"
    assert "GET /openapi.json" in error["message"] and "ends with /v1" in error["message"]
    answer = client.get("/judge")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert answer.json()["error"]["type"] == "method_not_allowed"
    assert answer.json()["error"]["message"] == "this route takes POST"
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_judges_and_health(client: TestClient) -> None:
    assert client.get("/judges").json()["judges"] == [
        {
            "name": name,
            "tasks": {"hieval-qs": []},
            "packages": {"custos": "0.1.0"},
            "measured": measured_lines(name, None, ("hieval-qs",), "embedded@1"),
        }
        for name in ("first", "second")
    ]
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready"}
    for route in HEALTH_ROUTES:
        answer = client.head(route)
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")


def test_the_cache_is_closed_also_where_no_end_of_a_picture_s_process_is_seen(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts that wait to be written to it would be lost."""
    monkeypatch.setattr("serve.app.CLOSE_S", 1.0)
    service, closed = Service({"a": judge}), threading.Event()
    monkeypatch.setattr(service.intake, "close", asyncio.Event().wait)
    monkeypatch.setattr(service, "close", closed.set)
    with TestClient(create_app(service)):
        pass
    assert closed.wait(5)


def test_the_limits_that_are_told_are_those_that_are_kept(judge: FakeJudge) -> None:
    own = Limits(requests=3, field_chars=30, items=20, images=1, body_bytes=900, deadline_s=9)
    with TestClient(create_app(Service({"a": judge}, own))) as client:
        told = client.get("/judges").json()["limits"]
        assert told == {each.name: getattr(own, each.name) for each in fields(CallLimits)}

        def status(body: object) -> int:
            return client.post("/judge", json=body).status_code

        request = row("x")
        assert status([request] * told["requests"]) == 200
        assert status([request] * (told["requests"] + 1)) == 422
        for size, expected in ((told["field_chars"], 200), (told["field_chars"] + 1, 422)):
            assert status({**request, "response": "x" * size}) == expected
        for size, expected in ((told["items"], 200), (told["items"] + 1, 422)):
            assert status({**request, "references": ["x"] * size}) == expected
        no_judge_sees_it = {"notes": [0] * (told["items"] + 1)}
        assert status({**request, "metadata": no_judge_sees_it}) == 200
        body = json.dumps(request)
        for size, expected in ((told["body_bytes"], 200), (told["body_bytes"] + 1, 413)):
            answer = client.post(
                "/judge", content=body.ljust(size), headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == expected
        picture = "data:image/png;base64,eA=="
        refused = client.post("/judge", json={**request, "images": [picture] * 2}).json()
        assert refused["error"]["message"] == f"more than {told['images']} pictures"


def test_the_documentation_names_every_limit_that_is_told() -> None:
    text = (Path(__file__).parents[2] / "docs/serving.md").read_text(encoding="utf-8")
    section = text.split("### What one call may cost")[1].split("\n### ")[0]
    assert [name for name in asdict(CallLimits()) if f"`{name}`" not in section] == []


def service(tasks: Sequence[str]) -> Service:
    judges = {"pairs": FakeJudge(tasks=("truthful-pair",)), "all": FakeJudge(tasks=tuple(tasks))}
    return Service(judges, Limits(requests=8))


def document(tasks: Sequence[str]) -> Any:
    return openapi(create_app(service(tasks)), service(tasks))


TASKS = ("hieval-qs", "truthful-pair")
DOCUMENT = document(TASKS)


def test_answers_have_the_form_that_the_document_says() -> None:
    with serving(service(TASKS)) as client:
        for method, path, body, status in (
            ("post", "/judge", row(), 200),
            ("post", "/judge", [row()], 200),
            ("post", "/judge", {}, 422),
            ("get", "/judges", None, 200),
            ("get", "/tasks", None, 200),
            ("get", "/health/ready", None, 200),
        ):
            answer = client.request(method, path, json=body)
            assert answer.status_code == status
            said = DOCUMENT["paths"][path][method]["responses"][str(status)]["content"]
            schema = said[answer.headers["Content-Type"]]["schema"]
            form = validator_for({**schema, "components": DOCUMENT["components"]})
            assert form.is_valid(answer.json()), (path, answer.json())
        foreign = client.get("/judges", headers={"Origin": "https://evil.test"})
        assert str(foreign.status_code) in DOCUMENT["paths"]["/judges"]["get"]["responses"]
        assert client.get("/metrics").headers["Content-Type"].startswith("text/plain")


def test_what_is_accepted_is_what_the_document_allows() -> None:
    whole = document(task_names())
    body = whole["paths"]["/judge"]["post"]["requestBody"]["content"]["application/json"]
    allowed = validator_for({**body["schema"], "components": whole["components"]})
    bodies = [example["value"] for example in body["examples"].values()]
    bodies += [
        {"requests": bodies[:3], "judge": "all"},
        {"requests": []},
        bodies[:3],
        [row(judge="all"), row()],
        {"requests": [row(judge="all"), row()]},
        {"requests": [row(judge="nobody")]},
        [row(), row(nonsense=1)],
        [row()] * 9,
        [[]],
        "text",
        row(judge="pairs"),
        row(nonsense=1),
        row(variant="nonsense"),
        row(task="nonsense"),
        row(mode="critique"),
        row(references=[]),
        row(references="Paris"),
        row(references=""),
        row(criteria="short"),
        row(risk=0.1),
        row(risk=1),
        row(seed=-1),
        row(seed=2**63),
        row(responses=["a"]),
        row(images=["https://example.org/cat.png"]),
        row("a" * 200_001),
        {"requests": [row()] * 9},
        {"question": "q", "task": "truthful-pair", "responses": ["a", "b"]},
        {"question": "q", "task": "truthful-pair", "responses": ["a"]},
        {"question": "", "references": ["x"], "response": "y"},
        [],
        {},
    ]
    with serving(service(task_names())) as client:
        for given in bodies:
            accepted = client.post("/judge", json=given).status_code == 200
            if given == row(judge="pairs"):  # one that a schema cannot know
                assert not accepted
                continue
            assert accepted == allowed.is_valid(given), given


def trained(rubrics: dict[str, tuple[str, ...]]) -> FakeJudge:
    """A judge that was trained for some rubrics of some tasks."""
    judge = FakeJudge(tasks=tuple(rubrics))
    judge.card = card_of(rubrics)
    return judge


@pytest.mark.parametrize("untrained", [False, True])
def test_listed_variants_and_rubrics_are_those_that_are_accepted(untrained: bool) -> None:
    judges = {name: trained(read_card(SHIPPED / name).tasks) for name in shipped_judges()}
    if untrained:
        judges["embedded"] = FakeJudge(tasks=task_names())
    with TestClient(create_app(Service(judges))) as client:
        entries = {entry["name"]: entry for entry in client.get("/tasks").json()["tasks"]}
        for name, entry in entries.items():
            task = get_task(name)
            accepted = {
                rubric: row
                for rubric, row in task.rows_by_rubric().items()
                if client.post("/judge", json=row).status_code == 200
            }
            # One reference serves both modes: what is not listed may be taken under another rubric.
            assert set(entry["rubrics"]) <= set(accepted), name
            variants = {row.get("variant", "plain") for row in accepted.values()}
            assert variants == set(entry["variants"]) <= set(task.variants), name
            assert entry["schema"]["properties"]["variant"]["enum"] == entry["variants"]
            assert client.post("/judge", json=entry["example"]).status_code == 200, name
            if untrained:
                assert entry["variants"] == list(task.variants), "an untrained judge takes all"
    shipped = {"chartom-fact", "criterion", "hieval-ea", "hieval-qs", "simplevqa", "truthful-pair"}
    assert set(entries) == (set(task_names()) if untrained else shipped)


class Unmeasured(FakeJudge):
    """A judge whose tasks are those of its card, if it has one, and what it may answer besides."""

    tasks = Judge.tasks


@pytest.mark.parametrize("shipped", [None, "embedded-qs"])
@pytest.mark.parametrize("allowed", [(), ("criterion",)])
def test_an_operator_allows_what_was_not_measured(
    shipped: str | None, allowed: tuple[str, ...]
) -> None:
    judge, body = Unmeasured("j"), get_task("criterion").example_row()
    judge.card, judge.allowed = read_card(SHIPPED / shipped) if shipped else None, allowed
    with TestClient(create_app(Service({"j": judge}))) as client:
        for answer in (client.post("/judge", json=body | named) for named in ({}, {"judge": "j"})):
            assert answer.status_code == (200 if allowed else 422)
            if allowed:
                assert answer.headers["X-Not-Measured"] == "j on criterion"
            else:
                error = answer.json()["error"]
                assert error["field"] == "task" and "--allow-unmeasured" in error["message"]
        listed = [entry["name"] for entry in client.get("/tasks").json()["tasks"]]
        assert ("criterion" in listed) is bool(allowed)


@pytest.mark.parametrize("hosts", [[], ["example.org"]])
def test_addresses_of_pictures_are_described_where_they_are_fetched(hosts: list[str]) -> None:
    images = RemoteImages(hosts, 1000) if hosts else None
    task, judges = get_task("hieval-qs"), {"a": FakeJudge()}
    schema = task_schema(task, Service(judges, remote_images=images))
    given = row(images=["https://example.org/cat.png"])
    assert validator_for(schema).is_valid(given) is bool(hosts)


def test_an_example_is_of_a_rubric_that_a_judge_knows() -> None:
    task = get_task("hieval-qs")
    assert task_example(task, [trained({"hieval-qs": ("plain/any",)})]) == task.example_row()
    row = task_example(task, [trained({"hieval-qs": ("tolerance/all",)})])
    assert (row["variant"], row["reference_mode"]) == ("tolerance", "all")
    assert task_example(task, [FakeJudge()]) == task.example_row()
    assert task_example(task, []) == task.example_row()
    without = task_example(get_task("truthful-pair"), [trained({"truthful-pair": ("plain",)})])
    assert "references" not in without


def test_the_headline_judge_is_who_grades_a_request_that_names_nothing() -> None:
    pairs = trained({"truthful-pair": ("plain", "reference")})
    other = trained({"hieval-ea": ("plain/all",), "hieval-qs": ("plain/all",)})
    headline = trained({"hieval-qs": ("plain/any",)})
    judges = {"pairs": pairs, "other": other, "headline": headline}
    assert headline_judge(judges) == "headline"
    assert headline_example(judges)["task"] == "hieval-qs"
    assert headline_judge({"pairs": pairs}) == "pairs"
    assert headline_example({"pairs": pairs})["task"] == "truthful-pair"


def test_the_headline_example_is_of_a_task_that_the_judge_was_measured_on() -> None:
    judge = trained({"hieval-qs": ("plain/all",), "hieval-ea": ("plain/all",)})
    assert headline_example({"ea": judge})["task"] == "hieval-qs", "nothing was measured"
    judge.folder = SHIPPED / "embedded-ea"
    assert headline_example({"ea": judge})["task"] == "hieval-ea"


def test_a_warm_up_is_one_request_of_a_task_that_the_judge_takes() -> None:
    for name in task_names():
        judge = FakeJudge(tasks=(name,))
        warm_up(judge)
        assert [request.task for request in judge.seen] == [name]
