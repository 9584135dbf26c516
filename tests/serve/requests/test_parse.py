"""``POST /judge`` and its stream: who judges, errors that name the field, what the log gets."""

import gc
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from clients.judge_client import JudgeClient
from clients.kept_verdicts import request_key
from judging import JudgeRequest, Verdict
from judging.judge import Judge
from judging.tasks import get_task
from serve.app import create_app
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.queue.cache import cache_key
from serve.queue.service import Service
from serve.requests import parse
from serve.requests.parse import decode_body, not_measured_headers
from tests.conftest import Folders
from tests.serve.chat.made_up import KnowingJudge, qa
from tests.serve.made_up import FakeJudge, card_of, picture, refused, row
from tests.serve.sockets import serving, serving_judges

LIMITS = Limits()


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
        field, message = refused(client, row(judge="pairs"))
        assert field == "task"
        assert message.startswith("judge 'pairs' takes truthful-pair, not 'hieval-qs'; ")


def test_no_judge_for_the_task() -> None:
    with TestClient(create_app(Service({"pairs": FakeJudge(tasks=("truthful-pair",))}))) as client:
        field, message = refused(client, {"requests": [row()]})
        assert (field, message) == (
            "requests.0.task",
            "no judge here takes 'hieval-qs'; they take truthful-pair",
        )


def test_unknown_judge_lists_the_known(client: TestClient) -> None:
    field, message = refused(client, row(judge="third"), 404)
    assert (field, message) == ("judge", "no judge 'third' here; there are: first, second")
    assert refused(client, row(judge=3))[0] == "judge"
    assert refused(client, [row(), row(judge="third")], 404)[0] == "1.judge"


def test_every_item_of_a_list_may_name_its_judge(client: TestClient) -> None:
    rows = [row(judge="second"), row(), row(judge="first")]
    for body in (rows, {"requests": rows}):
        verdicts = client.post("/judge", json=body).json()["verdicts"]
        named = [verdict["judge"] for verdict in verdicts]
        assert named == ["other/hieval-qs", "fake/hieval-qs", "fake/hieval-qs"]


NO_TEXT = "expected a text, got a number"


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b"", "body", "not valid JSON"),
        (b'[{}, {"metadata": {"\\u0022": 1, "\\u0022": 2}}]', "body", "row 2: the key"),
        ([row(), row(references=[])], "1.references", "needs it"),
        ([[row()]], "0", "expected a JSON object"),
        ([row()] * (LIMITS.requests + 1), "body", "at most 256"),
        ({}, "response", "required"),
        (row(nonsense=1), "nonsense", "unknown field"),
        (row(references=[]), "references", "task 'hieval-qs' needs it"),
        (row(task="nonsense"), "task", "is not one of"),
        (row(variant="a/b"), "variant", "is not one of"),
        (row(responses=["a"]), "body", "give only one of"),
        (row(references=["a", 3]), "references.1", NO_TEXT),
        (
            {"question": "q", "references": 3, "response": 4, "nonsense": 1},
            "references",
            f"[\"text\"]; and field 'response': {NO_TEXT}; and field 'nonsense': unknown field",
        ),
        ({"requests": {}}, "requests", "expected a list"),
        ({"requests": [], "more": 1}, "more", "unknown field"),
        ({"requests": [row(), 3]}, "requests.1", "expected a JSON object"),
        ({"requests": [row(), row(judge=["first"])]}, "requests.1.judge", "the name of a judge"),
        (
            {"requests": [row(), row(judge="first")], "judge": "second"},
            "requests.1.judge",
            "'first' is named here and 'second' beside 'requests'",
        ),
        ({"requests": [row(), row() | {"response": 5}]}, "requests.1.response", NO_TEXT),
        ({"requests": [{"question": "q", "references": ["r"]}]}, "requests.0.response", "required"),
    ],
)
def test_errors_name_the_field(
    client: TestClient, judge: FakeJudge, body: Any, field: str, says: str
) -> None:
    named, message = refused(client, body)
    assert named == field
    assert says in message
    assert judge.batches == []


def test_values_are_counted_before_they_are_decoded() -> None:
    body = b'{"metadata": {"x": [' + b"[]," * 3_000_000 + b"[]]}}"
    tracemalloc.start()
    with pytest.raises(ApiError, match="more than 100,000 values"):
        decode_body(body, LIMITS)
    assert tracemalloc.get_traced_memory()[1] < 3_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("seed", range(12))
def test_values_are_counted_as_a_decoder_would(
    seed: int, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that hold quotation marks, backslashes, commas and brackets, wherever parts end."""
    random = Random(seed)
    letters = ['"', "\\", "[", ",", "{", "\u2222", "\u2c2c", "x"]

    def made(depth: int) -> Any:
        kind = random.random() if depth < 4 else 0
        if kind < 0.4:
            return random.choice(["".join(random.choices(letters, k=9)), 1.5, None])
        items = [made(depth + 1) for _ in range(random.randint(1, 4))]
        return items if kind < 0.7 else {f'{n}"[': item for n, item in enumerate(items)}

    def count(value: Any) -> int:
        parts = value.values() if isinstance(value, dict) else value
        return 1 + sum(map(count, parts)) if isinstance(value, dict | list) else 1

    monkeypatch.setattr(parse, "PART_BYTES", random.randint(1, 20))
    value = {"x": [made(0) for _ in range(9)], "y": 1}
    body = json.dumps(value, ensure_ascii=random.random() < 0.5).encode(encoding)
    num_values = count(value)
    assert decode_body(body, Limits(values=num_values)) == value
    with pytest.raises(ApiError, match="values"):
        decode_body(body, Limits(values=num_values - 1))


@pytest.mark.parametrize("body", [b'"\xff"', b'"x', b"1e999"])
def test_a_refused_body_is_freed_at_once(body: bytes) -> None:
    """Without a cycle through its error, which lasts until Python looks for such."""

    def num_in_cycles() -> int:
        gc.collect()
        gc.disable()
        try:
            with suppress(ApiError):
                decode_body(body, LIMITS)
            return gc.collect()
        finally:
            gc.enable()

    assert 0 in (num_in_cycles() for _ in range(5))  # another test's thread may leave some too


def test_field_lengths_are_bounded_over_all_parts(client: TestClient) -> None:
    half = "x" * (LIMITS.field_chars // 2)
    assert client.post("/judge", json=row(references=[half, half])).status_code == 200
    assert refused(client, row(references=[half, half, "y"]))[0] == "references"


SCHEMA = JudgeRequest.model_json_schema()["properties"]


@pytest.mark.parametrize("name", [name for name in SCHEMA if name not in ("images", "metadata")])
def test_every_text_of_a_request_has_the_bound_of_its_service(judge: FakeJudge, name: str) -> None:
    """A name that is longer is refused for not being known."""
    content = row()
    if name == "responses":
        del content["response"]
    text = "x" * 61
    content[name] = [text] if SCHEMA[name].get("type") == "array" else text
    service = Service({"a": judge}, Limits(field_chars=60))
    with TestClient(create_app(service)) as client:
        assert refused(client, content)[0] == name


def test_pictures_of_a_request_and_of_a_call_are_bounded(client: TestClient) -> None:
    for images in ([picture()] * (LIMITS.images + 1), [picture((4001, 4000), mode="1")]):
        assert refused(client, row(images=images))[0] == "images"
    large = row(images=[picture((4000, 4000), mode="1")])
    field, message = refused(client, {"requests": [large] * 5})
    assert (field, message) == ("requests.4.images", "more than 64,000,000 pixels in one call")


def test_a_list_gives_a_list_in_order(client: TestClient) -> None:
    rows = [row("Paris", id="a"), row("Rome", id="b"), row("in Paris", id="c")]
    for body in ({"requests": rows}, rows):
        verdicts = client.post("/judge", json=body).json()["verdicts"]
        assert [(v["id"], v["label"]) for v in verdicts] == [
            ("a", "Correct"),
            ("b", "Wrong"),
            ("c", "Correct"),
        ]


def test_lists_have_any_number_of_requests_up_to_the_limit(client: TestClient) -> None:
    for number in (0, 1, Limits().requests):
        for body in ({"requests": [row()] * number}, [row()] * number):
            assert len(client.post("/judge", json=body).json()["verdicts"]) == number


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
    error_text = "field 'images': the server answered 400: secret"  # names a field
    monkeypatch.setattr(
        judge, "verdict_on", lambda request, _: Verdict(status="judge_error", message=error_text)
    )
    with TestClient(create_app(Service({"a": judge}))) as client:
        answer = client.post("/judge", json=row(), headers={"X-Request-ID": "call-10"})
    message = answer.json()["message"]
    assert message == "the judge could not grade this; the log has it under request call-10"
    assert f"request call-10: {error_text}" in caplog.text


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
        assert refused_stream(client, {**pair, "response_a": 3}) == "response_a"


def test_no_character_of_a_critique_ends_a_line_of_a_stream() -> None:
    """Many clients read lines as Python's ``splitlines`` does."""
    judge = FakeJudge(tasks=("truthful-pair",))
    judge.CRITIQUE = "One\u2028two\x85three."
    pair = {**get_task("truthful-pair").example_row(), "task": "truthful-pair", "mode": "critique"}
    with TestClient(create_app(Service({"pairs": judge}))) as client:
        *_, last = filter(None, client.post("/judge/stream", json=pair).iter_lines())
    assert json.loads(last.removeprefix("data: "))["critique"] == judge.CRITIQUE


def refused_stream(client: TestClient, body: Any) -> str:
    answer = client.post("/judge/stream", json=body)
    assert answer.status_code == 422
    field: str = answer.json()["error"]["field"]
    return field


def test_a_risk_is_a_share(client: TestClient) -> None:
    assert refused(client, row(risk=1.5))[0] == "risk"


THINKING = "<think>Rome? No, Paris.</think>\nIt is Paris."
ANSWER = "It is Paris."


def request(response: str, **fields: object) -> JudgeRequest:
    return JudgeRequest.model_validate(row(response, **fields))


@pytest.fixture(scope="module")
def tiny(tiny_folders: Folders) -> Judge:
    return Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def address(tiny: Judge) -> Iterator[str]:
    with serving_judges({"tiny": tiny}) as url:
        yield url


def test_the_service_grades_as_this_machine_does(tiny: Judge, address: str) -> None:
    asked = [
        request(THINKING),
        request(ANSWER),
        request(THINKING, reasoning="keep"),
        request("<think>Paris, I"),
        request(""),
    ]
    here = list(tiny.grade(asked))
    there = list(JudgeClient(address).grade(asked))
    for one, other in zip(here, there, strict=True):
        assert (one.status, one.label, one.message) == (other.status, other.label, other.message)
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-4)
    thinking, answer, kept, never, empty = there
    assert thinking.probabilities == pytest.approx(answer.probabilities, rel=1e-4)
    assert thinking.probabilities != pytest.approx(kept.probabilities, rel=1e-4)
    said = ["thinking tags" in (verdict.message or "") for verdict in (thinking, answer, kept)]
    assert said == [True, False, False]
    assert never.label == empty.label == "Wrong"
    assert never.posterior is empty.posterior is None
    assert never.message != empty.message


def test_what_is_kept_of_earlier_versions_stays_unless_thoughts_were_graded(tiny: Judge) -> None:
    requests = [request(ANSWER), request(THINKING), request(THINKING, reasoning="keep")]
    for keys in (
        {request_key(FakeJudge(), each) for each in requests},
        {cache_key(tiny, each) for each in requests},
    ):
        assert len(keys) == 3
    assert tiny.fingerprint(requests[0]) == tiny.fingerprint(requests[1])


def test_a_chat_names_the_field_too() -> None:
    judge = KnowingJudge()
    with serving_judges({"knowing": judge}) as url:
        for more in ({}, {"reasoning": "keep"}, {"reasoning": {"effort": "low"}}):
            answer = httpx.post(f"{url}/v1/chat/completions", json=qa(THINKING, **more))
            assert answer.status_code == 200, answer.text
    assert [each.response for each in judge.seen] == [ANSWER, THINKING, ANSWER]


ROWS = [
    {"task": "truthful-reward", "question": "Is the mill green?", "response": response}
    for response in ("Yes, it is green.", "No, it is brown.", "Nobody can say so.")
]


def test_a_reward_survives_the_service(tiny_folders: Folders) -> None:
    judge = Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")
    expected = list(judge.grade([JudgeRequest.model_validate(row) for row in ROWS]))
    with serving(Service({"tiny": judge})) as client:
        rows = client.post("/judge", json={"requests": ROWS}).json()["verdicts"]
    verdicts = [Verdict.model_validate(verdict) for verdict in rows]
    assert [verdict.score for verdict in verdicts] == [
        pytest.approx(verdict.score) for verdict in expected
    ]
    assert len({verdict.score for verdict in verdicts}) == len(ROWS)
    # Whoever trains on it may well need more digits than people read.
    assert all(verdict.score != round(verdict.score or 0, 6) for verdict in verdicts)


SHIPPED = Path(__file__).parents[3] / "judges" / "embedded-qs"


def test_judges_and_tasks_without_figures_are_named_once() -> None:
    measured = FakeJudge("measured")
    measured.folder = SHIPPED
    service = Service({"measured": measured, "other": FakeJudge("other")})
    calls = [
        ("measured", "hieval-qs"),
        ("measured", "charthal"),
        ("other", "hieval-qs"),
        ("other", "hieval-qs"),
    ]
    asked = [service.checked(request("a", task=task), name) for name, task in calls]
    judged = Verdict(status="scored", label="Correct", posterior="exact")
    ruled = Verdict(status="scored", label="Correct")
    headers = not_measured_headers(asked, [judged] * 4)
    assert headers == {"X-Not-Measured": "measured on charthal, other on hieval-qs"}
    assert not_measured_headers(asked[:1], [judged]) == {}
    measured.card = card_of({"hieval-qs": ("plain/any", "plain/all")})
    graded = request("a", references=["a", "b"], reference_mode="any-partial")
    headers = not_measured_headers([service.checked(graded, "measured")], [judged])
    assert headers == {"X-Not-Measured": "measured on hieval-qs/plain/any-partial"}
    some_by_rule = [judged, ruled, ruled, judged]
    headers = not_measured_headers(asked, some_by_rule)
    assert headers == {"X-Not-Measured": "other on hieval-qs"}


def test_a_judge_whose_name_no_header_holds_answers() -> None:
    with TestClient(create_app(Service({"judge №1": FakeJudge()}))) as client:
        answer = client.post("/judge", json=row())
    assert answer.json()["judge_name"] == "judge №1"
    assert answer.headers["X-Not-Measured"] == "judge %E2%84%961 on hieval-qs"
