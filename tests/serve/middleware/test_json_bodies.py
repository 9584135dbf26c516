"""Kinds and encodings of bodies; pages of other sites could send some that are no JSON."""

import gzip
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


@pytest.mark.parametrize("path", ["/judge", "/judge/stream", "/v1/chat/completions"])
@pytest.mark.parametrize("encoding", ["gzip", "Deflate", "identity, br", "nonsense"])
def test_compressed_bodies_are_refused(http: httpx.Client, path: str, encoding: str) -> None:
    content = gzip.compress(json.dumps(row()).encode())
    answer = http.post(path, content=content, headers={"Content-Encoding": encoding})
    assert answer.status_code == 415
    assert answer.json()["error"]["field"] == "Content-Encoding"


def test_a_body_may_say_that_it_is_not_compressed(http: httpx.Client) -> None:
    headers = {"Content-Encoding": "identity"}
    assert http.post("/judge", json=row(), headers=headers).json()["label"] == "Correct"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_every_form_of_unicode_is_read(http: httpx.Client, encoding: str) -> None:
    text = json.dumps(row("In Málaga 西班牙", references=["Málaga 西班牙"]), ensure_ascii=False)
    answer = http.post("/judge", content=text.encode(encoding))
    assert (answer.status_code, answer.json()["label"]) == (200, "Correct")


@pytest.mark.parametrize("path", ["/judge", "/judge/stream", "/v1/chat/completions"])
def test_other_encodings_are_named_as_the_fault(http: httpx.Client, path: str) -> None:
    """PowerShell 5 sends Latin-1."""
    text = json.dumps(row("Málaga"), ensure_ascii=False)
    error = http.post(path, content=text.encode("latin-1")).json()["error"]
    assert "not UTF-8" in error["message"]
    position = text.index("á")
    assert f"0xe1 at position {position}" in error["message"]


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_json_is_taken(http: httpx.Client, kind: str) -> None:
    answer = http.post("/judge", content=json.dumps(row()), headers={"Content-Type": kind})
    assert answer.json()["label"] == "Correct"
