"""Bodies that do not say that they are JSON, which pages of other sites could send."""

import json
from collections.abc import Iterator

import httpx
import pytest

from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serving(Service({"a": FakeJudge()})) as client:
        yield client


@pytest.mark.parametrize("path", ["/judge", "/judge/stream", "/v1/chat/completions"])
@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_other_kinds_are_refused(http: httpx.Client, path: str, kind: str) -> None:
    answer = http.post(path, content=json.dumps(row()), headers={"Content-Type": kind})
    assert answer.status_code == 415
    error = answer.json()["error"]
    assert (error["type"], error["field"]) == ("unsupported_media_type", "Content-Type")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_is_taken(http: httpx.Client, kind: str) -> None:
    answer = http.post("/judge", content=json.dumps(row()), headers={"Content-Type": kind})
    assert answer.json()["label"] == "Correct"
