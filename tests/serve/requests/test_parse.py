"""Bodies of ``POST /judge``: the judge that they name, and errors that name the field."""

import gc
import json
import tracemalloc
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from fastapi.testclient import TestClient

from serve.app import create_app
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.queue.service import Service
from serve.requests import parse
from serve.requests.parse import decode_body
from tests.serve.made_up import FakeJudge, picture, refused, row

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
        (b"{", "body", "not valid JSON"),
        (b"", "body", "not valid JSON"),
        (b'{"metadata": {"x": NaN}}', "body", "not valid JSON"),
        (b"[" * 90_000, "body", "more than 200 times"),
        (b'[{}, {"metadata": {"\\u0022": 1, "\\u0022": 2}}]', "body", "row 2: the key"),
        (b"3", "body", "expected a request object, or a list of them"),
        ([row(), row(references=[])], "1.references", "needs it"),
        (
            [row(), row(), row(), {**row(), "response": 5}],
            "3.response",
            NO_TEXT,
        ),
        ([3], "0", "expected a JSON object"),
        ([[row()]], "0", "expected a JSON object"),
        ([row()] * (LIMITS.requests + 1), "body", "at most 256"),
        ({}, "response", "required"),
        (row(nonsense=1), "nonsense", "unknown field"),
        (row(references=[]), "references", "task 'hieval-qs' needs it"),
        (row(task="nonsense"), "task", "is not one of"),
        (row(variant="a/b"), "variant", "is not one of"),
        (row(responses=["a"]), "body", "give only one of"),
        (row(seed="x"), "seed", "valid integer"),
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
        (
            {"requests": [row(), {**row(), "response": 5}]},
            "requests.1.response",
            NO_TEXT,
        ),
        ({"requests": [{"question": "q", "references": ["r"]}]}, "requests.0.response", "required"),
        (
            {"requests": [{"question": "q", "response_a": "x", "response_b": 3}]},
            "requests.0.response_b",
            NO_TEXT,
        ),
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
    gc.collect()
    gc.disable()
    try:
        with suppress(ApiError):
            decode_body(body, LIMITS)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_seeds_are_those_a_generator_takes(client: TestClient) -> None:
    assert client.post("/judge", json=row(seed=2**63 - 1)).status_code == 200
    for seed in (-1, 2**63, 10**30):
        assert refused(client, row(seed=seed))[0] == "seed"


def test_field_lengths_are_bounded_over_all_parts(client: TestClient) -> None:
    half = "x" * (LIMITS.field_chars // 2)
    assert client.post("/judge", json=row(references=[half, half])).status_code == 200
    assert refused(client, row(references=[half, half, "y"]))[0] == "references"


def test_pictures_of_a_request_and_of_a_call_are_bounded(client: TestClient) -> None:
    for images in ([picture()] * (LIMITS.images + 1), [picture((4001, 4000), mode="1")]):
        assert refused(client, row(images=images))[0] == "images"
    large = row(images=[picture((4000, 4000), mode="1")])
    field, message = refused(client, {"requests": [large] * 5})
    assert (field, message) == ("requests.4.images", "more than 64,000,000 pixels in one call")
