import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from judging import CustosError, Verdict
from judging.tasks import task_names
from serve.app import create_app
from serve.limits import Limits
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row

LIMITS = Limits()


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def client(judge: FakeJudge) -> Iterator[TestClient]:
    app = create_app(Service({"first": judge, "second": FakeJudge("other")}))
    with TestClient(app) as client:
        yield client


def picture(size: tuple[int, int] = (8, 8), kind: str = "png", mode: str = "RGB") -> str:
    file = io.BytesIO()
    Image.new(mode, size).save(file, kind)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def refused(client: TestClient, body: Any, status: int = 422) -> tuple[str | None, str]:
    """Field and message of an error, whose body must have the one shape."""
    sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = client.post("/judge", **sent)
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    error = answer.json()["error"]
    assert error.keys() == {"type", "message", "field"}
    return error["field"], error["message"]


def test_one_request_gives_one_verdict(client: TestClient) -> None:
    answer = client.post("/judge", json=row(id="a"))
    assert answer.status_code == 200
    verdict = answer.json()
    assert (verdict["id"], verdict["status"], verdict["label"]) == ("a", "scored", "Correct")
    assert sum(verdict["probabilities"].values()) == pytest.approx(1)


def test_a_list_gives_a_list_in_order(client: TestClient) -> None:
    rows = [row("Paris", id="a"), row("Rome", id="b"), row("in Paris", id="c")]
    verdicts = client.post("/judge", json={"requests": rows}).json()["verdicts"]
    assert [(v["id"], v["label"]) for v in verdicts] == [
        ("a", "Correct"),
        ("b", "Wrong"),
        ("c", "Correct"),
    ]


def test_a_list_of_one_and_of_none_are_lists(client: TestClient) -> None:
    assert len(client.post("/judge", json={"requests": [row()]}).json()["verdicts"]) == 1
    assert client.post("/judge", json={"requests": []}).json() == {"verdicts": []}


def test_the_judge_is_the_named_one_or_the_first(client: TestClient) -> None:
    assert client.post("/judge", json=row()).json()["judge"] == "fake/hieval-qs"
    named = client.post("/judge", json=row(judge="second")).json()
    assert named["judge"] == "other/hieval-qs"
    listed = client.post("/judge", json={"judge": "second", "requests": [row()]}).json()
    assert listed["verdicts"][0]["judge"] == "other/hieval-qs"


def test_the_first_judge_that_takes_the_task() -> None:
    app = create_app(
        Service({"pairs": FakeJudge("pairs", tasks=("truthful-pair",)), "qs": FakeJudge()})
    )
    with TestClient(app) as client:
        assert client.post("/judge", json=row()).json()["judge"] == "fake/hieval-qs"
        assert refused(client, row(judge="pairs")) == (
            "task",
            "judge 'pairs' does not take 'hieval-qs'",
        )


def test_no_judge_for_the_task() -> None:
    with TestClient(create_app(Service({"pairs": FakeJudge(tasks=("truthful-pair",))}))) as client:
        field, message = refused(client, {"requests": [row()]})
        assert (field, message) == ("requests.0.task", "no judge here takes 'hieval-qs'")


def test_unknown_judge_lists_the_known(client: TestClient) -> None:
    field, message = refused(client, row(judge="third"), 404)
    assert (field, message) == ("judge", "no judge 'third' here; there are: first, second")
    assert refused(client, row(judge=3))[0] == "judge"


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b"{", "body", "not valid JSON"),
        (b"", "body", "not valid JSON"),
        (b'{"metadata": {"x": NaN}}', "body", "not valid JSON"),
        (b"[" * 100_000, "body", "not valid JSON"),
        ([row()], "body", "expected a JSON object"),
        ({}, "question", "Field required"),
        (row(nonsense=1), "nonsense", "Extra inputs"),
        (row(references=[]), "references", "task 'hieval-qs' needs it"),
        (row(task="nonsense"), "task", "is not one of"),
        (row(variant="a/b"), "variant", "is not one of"),
        (row(responses=["a"]), "body", "give only one of"),
        (row(seed="x"), "seed", "valid integer"),
        (row(references=["a", 3]), "references.1", "valid string"),
        ({"requests": {}}, "requests", "expected a list"),
        ({"requests": [], "more": 1}, "more", "not known"),
        ({"requests": [row(), 3]}, "requests.1", "valid dictionary"),
        ({"requests": [row(), row(judge="first")]}, "requests.1.judge", "Extra inputs"),
        (
            {"requests": [row(), row(), row(), row(references=[])]},
            "requests.3.references",
            "needs it",
        ),
        ({"requests": [row()] * (LIMITS.requests + 1)}, "requests", "at most 256"),
    ],
)
def test_errors_name_the_field(
    client: TestClient, judge: FakeJudge, body: Any, field: str, says: str
) -> None:
    named, message = refused(client, body)
    assert named == field
    assert says in message
    assert judge.batches == []


def test_as_many_requests_as_allowed(client: TestClient) -> None:
    answer = client.post("/judge", json={"requests": [row()] * LIMITS.requests})
    assert len(answer.json()["verdicts"]) == LIMITS.requests


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_pictures_come_as_data_urls(client: TestClient, kind: str) -> None:
    assert client.post("/judge", json=row(images=[picture(kind=kind)])).status_code == 200


@pytest.mark.parametrize(
    "image",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
        "https://example.org/cat.png",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:image/png,raw",
        " " + "data:image/png;base64,AAAA",
    ],
)
def test_nothing_but_data_urls(client: TestClient, image: str) -> None:
    field, message = refused(client, {"requests": [row(), row(images=[image])]})
    assert field == "requests.1.images"
    assert "only data URLs" in message


@pytest.mark.parametrize(
    "image", ["data:image/png;base64,AAAA", "data:image/png;base64,!", picture(kind="gif")]
)
def test_broken_pictures_say_nothing_of_their_content(client: TestClient, image: str) -> None:
    image = image.replace("image/gif", "image/png")
    assert refused(client, row(images=[image])) == (
        "images",
        "not a readable JPEG, PNG or WebP picture",
    )


@pytest.mark.parametrize("size", [(4001, 4000), (20_000, 10_000)])
def test_bombs_are_refused_by_their_header(client: TestClient, size: tuple[int, int]) -> None:
    assert (
        "more than 16,000,000 pixels" in refused(client, row(images=[picture(size, mode="1")]))[1]
    )


def test_pictures_of_a_request_and_of_a_call_are_bounded(client: TestClient) -> None:
    assert (
        refused(client, row(images=[picture()] * (LIMITS.images + 1)))[1] == "more than 8 pictures"
    )
    large = row(images=[picture((4000, 4000), mode="1")])
    field, message = refused(client, {"requests": [large] * 5})
    assert (field, message) == ("requests.4.images", "more than 64,000,000 pixels in one call")


def test_the_largest_body(client: TestClient) -> None:
    body = b'{"question": ' + b" " * (LIMITS.body_bytes - 14) + b"3"
    assert len(body) == LIMITS.body_bytes
    assert refused(client, body)[0] == "body"
    assert "larger than 20,000,000 bytes" in refused(client, body + b" ", 413)[1]


def test_a_request_that_breaks_the_judge_is_a_judge_error_without_internals(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.post("/judge", json=row("break", id="b"), headers={"X-Request-ID": "call-7"})
    assert answer.status_code == 200
    verdict = answer.json()
    assert (verdict["id"], verdict["status"], verdict["label"]) == ("b", "judge_error", None)
    assert "call-7" in verdict["message"]
    assert "secret" not in answer.text
    assert "0x7f00" in caplog.text
    assert client.post("/judge", json=row()).json()["status"] == "scored"


def test_what_another_server_says_stays_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = FakeJudge()
    said = "field 'images': the server answered 400: secret"  # as if a field had been named
    monkeypatch.setattr(
        judge, "verdict_on", lambda request, _: Verdict(status="judge_error", message=said)
    )
    with TestClient(create_app(Service({"a": judge}))) as client:
        answer = client.post("/judge", json=row(), headers={"X-Request-ID": "call-10"})
    message = answer.json()["message"]
    assert message == "the judge could not grade this; the log has it under request call-10"
    assert f"request call-10: {said}" in caplog.text


def test_a_fault_of_the_service_is_a_500_without_internals(
    client: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(judges: Any, request: Any) -> str:
        raise RuntimeError("secret of /root/.ssh")

    monkeypatch.setattr("serve.requests.parse.choose_judge", broken)
    answer = client.post("/judge", json=row(), headers={"X-Request-ID": "call-8"})
    assert answer.status_code == 500
    assert answer.headers["X-Request-ID"] == "call-8"
    assert answer.json()["error"]["type"] == "internal"
    assert "call-8" in answer.json()["error"]["message"]
    assert "secret" not in answer.text
    assert "secret" in caplog.text


def test_request_ids(client: TestClient) -> None:
    given = client.get("/judges", headers={"X-Request-ID": "Call_7.a-b"})
    assert given.headers["X-Request-ID"] == "Call_7.a-b"
    for bad in ("", "a b", "x" * 129):
        made = client.get("/nothing", headers={"X-Request-ID": bad}).headers["X-Request-ID"]
        assert len(made) == 32
    first, second = (client.get("/judges").headers["X-Request-ID"] for _ in range(2))
    assert first != second


def test_unknown_routes_have_the_same_shape(client: TestClient) -> None:
    assert client.get("/v2").json()["error"]["type"] == "not_found"
    answer = client.get("/judge")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert answer.json()["error"]["type"] == "method_not_allowed"
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_judges_and_health(client: TestClient) -> None:
    assert client.get("/judges").json() == {
        "judges": [
            {"name": "first", "tasks": {"hieval-qs": []}},
            {"name": "second", "tasks": {"hieval-qs": []}},
        ]
    }
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready"}


def test_no_judges() -> None:
    with pytest.raises(CustosError, match="at least one judge"):
        Service({})


def test_tasks_come_with_a_schema_and_an_example_that_is_accepted() -> None:
    service = Service({"all": FakeJudge(tasks=task_names())})
    with TestClient(create_app(service)) as client:
        tasks = client.get("/tasks").json()["tasks"]
        assert [task["name"] for task in tasks] == sorted(task_names())
        for task in tasks:
            assert task["judges"] == ["all"]
            answer = client.post("/judge", json=task["example"])
            assert answer.status_code == 200, answer.text
            assert answer.json()["status"] == "scored"


def test_seeds_are_those_a_generator_takes(client: TestClient) -> None:
    assert client.post("/judge", json=row(seed=2**63 - 1)).status_code == 200
    for seed in (-1, 2**63, 10**30):
        assert refused(client, row(seed=seed))[0] == "seed"


def test_field_lengths_are_bounded_over_all_parts(client: TestClient) -> None:
    half = "x" * (LIMITS.field_chars // 2)
    assert client.post("/judge", json=row(references=[half, half])).status_code == 200
    assert refused(client, row(references=[half, half, "y"]))[0] == "references"


def test_security_headers_and_timings(client: TestClient) -> None:
    answer = client.post("/judge", json=row())
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    assert float(answer.headers["X-Queue-Ms"]) >= 0
    assert float(answer.headers["X-Inference-Ms"]) > 0
    assert client.get("/nothing").headers["X-Frame-Options"] == "DENY"


def test_streams_the_critique_then_the_verdict() -> None:
    service = Service({"pairs": FakeJudge(tasks=("truthful-pair",))})
    pair = {
        "task": "truthful-pair",
        "mode": "critique",
        "question": "Which?",
        "response_a": "one",
        "response_b": "two",
    }
    with TestClient(create_app(service)) as client:
        answer = client.post("/judge/stream", json=pair)
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        events = [event.split("\n") for event in answer.text.strip().split("\n\n")]
        names = [event[0].removeprefix("event: ") for event in events]
        data = [json.loads(event[1].removeprefix("data: ")) for event in events]
        assert names == ["critique"] * (len(names) - 1) + ["verdict"]
        assert "".join(piece["text"] for piece in data[:-1]) == FakeJudge.CRITIQUE
        assert data[-1] == client.post("/judge", json=pair).json()
        assert refused_stream(client, {**pair, "response_a": 3}) == "responses.0"


def refused_stream(client: TestClient, body: Any) -> str:
    answer = client.post("/judge/stream", json=body)
    assert answer.status_code == 422
    field: str = answer.json()["error"]["field"]
    return field


def test_metrics_tell_what_happened(client: TestClient) -> None:
    client.post("/judge", json={"requests": [row(), row(), row("break")]})
    text = client.get("/metrics").text
    assert 'judge_verdict_total{judge="first",label="Correct",status="scored"} 2.0' in text
    assert 'judge_verdict_total{judge="first",label="",status="judge_error"} 1.0' in text
    assert 'judge_requests_total{outcome="answered"} 3.0' in text
    assert 'judge_http_requests_total{route="/judge",status="200"} 1.0' in text
    assert 'judge_num_requests_waiting{judge="second"} 0.0' in text


def test_contents_are_logged_only_when_asked(
    judge: FakeJudge, caplog: pytest.LogCaptureFixture
) -> None:
    for log_contents in (False, True):
        caplog.clear()
        caplog.set_level("INFO")
        with TestClient(create_app(Service({"a": judge}), log_contents=log_contents)) as client:
            client.post("/judge", json=row("the answer is Paris"))
        assert ("the answer is Paris" in caplog.text) == log_contents


def test_before_the_judges_are_loaded_everything_but_health_is_503(judge: FakeJudge) -> None:
    service = Service()
    with TestClient(create_app(service)) as client:
        assert client.get("/health/live").status_code == 200
        assert client.get("/health/ready").json() == {"status": "starting"}
        answer = client.post("/judge", json=row())
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        service.open({"a": judge})
        assert client.get("/health/ready").status_code == 200
        assert client.post("/judge", json=row()).status_code == 200
