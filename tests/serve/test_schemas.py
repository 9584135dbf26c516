"""The OpenAPI document says what is accepted, and nothing that it allows breaks the service."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, settings
from jsonschema_rs import validator_for
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from judging.judge.card import SHIPPED, read_card, shipped_judges
from judging.tasks import get_task, task_names
from judging.verdicts.calibration import CalibrationSet
from judging.verdicts.risk import HeldOutVerdicts
from serve.app import create_app
from serve.limits import Limits
from serve.queue.service import Service
from serve.schemas import openapi, task_schema
from tests.serve.made_up import FakeJudge, card_of, row
from tests.serve.sockets import serving


def service(tasks: Sequence[str]) -> Service:
    judges = {"pairs": FakeJudge(tasks=("truthful-pair",)), "all": FakeJudge(tasks=tuple(tasks))}
    return Service(judges, Limits(requests=8))


def document(tasks: Sequence[str]) -> Any:
    return openapi(create_app(service(tasks)), service(tasks))


TASKS = ("hieval-qs", "charthal", "truthful-pair")
DOCUMENT = document(TASKS)


def part(*paths: str) -> schemathesis.BaseSchema:
    """Return the document of some paths, for cases to be made from."""
    return schemathesis.openapi.from_dict(
        {**DOCUMENT, "paths": {path: DOCUMENT["paths"][path] for path in paths}}
    )


CALLS = part("/judge", "/judges", "/tasks", "/health/ready", "/metrics")
STREAM = part("/judge/stream")
STREAM.config.phases.coverage.enabled = False  # every kind of body is tried on /judge
FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(service(TASKS)) as client:
        yield str(client.base_url)


def call_and_check(case: schemathesis.Case[Any], address: str) -> None:
    case.call_and_validate(
        base_url=address,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )


@CALLS.parametrize()
@FEW
def test_nothing_the_document_allows_breaks_the_service(
    case: schemathesis.Case[Any], address: str
) -> None:
    call_and_check(case, address)


@STREAM.parametrize()
@FEW
def test_nothing_that_it_allows_breaks_a_stream(case: schemathesis.Case[Any], address: str) -> None:
    call_and_check(case, address)


def test_a_stream_takes_what_a_call_takes() -> None:
    call, stream = (
        DOCUMENT["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        for path in ("/judge", "/judge/stream")
    )
    assert len(stream["anyOf"]) == len(TASKS)
    assert all(kind in call["anyOf"] for kind in stream["anyOf"])


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


def test_what_a_trained_judge_does_not_take_is_not_listed() -> None:
    judge = FakeJudge("narrow", ("hieval-qs",))
    judge.card = card_of({"hieval-qs": ("tolerance/any", "tolerance/all")})
    narrow = Service({"narrow": judge})
    with TestClient(create_app(narrow)) as client:
        [task] = client.get("/tasks").json()["tasks"]
        assert task["variants"] == ["tolerance"]
        assert list(task["rubrics"]) == ["tolerance/any", "tolerance/all"]
        whole = client.get("/openapi.json").json()
        body = whole["paths"]["/judge"]["post"]["requestBody"]["content"]["application/json"]
        allowed = validator_for({**body["schema"], "components": whole["components"]})
        for given, is_taken in [
            (task["example"], True),
            (row(variant="tolerance"), True),
            (row(variant="plain"), False),
            (row(), False),
        ]:
            assert (client.post("/judge", json=given).status_code == 200) is is_taken, given
            assert allowed.is_valid(given) is is_taken, given


def test_tasks_come_with_a_schema_and_an_example_that_is_accepted() -> None:
    every = Service({"all": FakeJudge(tasks=task_names())})
    with TestClient(create_app(every)) as client:
        tasks = client.get("/tasks").json()["tasks"]
        assert [task["name"] for task in tasks] == sorted(task_names())
        for task in tasks:
            assert task["judges"] == ["all"]
            answer = client.post("/judge", json=task["example"])
            assert answer.status_code == 200, answer.text
            assert answer.json()["status"] == "scored"


class Carded(FakeJudge):
    """A judge that knows what a shipped judge knows."""

    def __init__(self, name: str) -> None:
        card = read_card(SHIPPED / name)
        super().__init__(name, tuple(card.tasks))
        self.card = card


@pytest.mark.parametrize("untrained", [False, True])
def test_listed_variants_and_rubrics_are_those_that_are_accepted(untrained: bool) -> None:
    judges: dict[str, FakeJudge] = {name: Carded(name) for name in shipped_judges()}
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
    shipped = {"chartom-fact", "hieval-ea", "hieval-qs", "simplevqa", "truthful-pair"}
    assert set(entries) == (set(task_names()) if untrained else shipped)


def test_a_risk_is_offered_where_a_judge_has_thresholds() -> None:
    judge, task = FakeJudge(), get_task("hieval-qs")
    assert "risk" not in task_schema(task, Service({"a": judge}))["properties"]
    held_out = {"hieval-qs/plain/any": HeldOutVerdicts(confidence=(0.9,), right=(True,))}
    judge.calibration = CalibrationSet(judge="a", rubrics={}, held_out=held_out)
    limits, _ = task_schema(task, Service({"a": judge}))["properties"]["risk"]["anyOf"]
    assert limits == {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
