"""Pages of other sites, which a browser on this machine may show."""

import json
from collections.abc import Iterator

import httpx
import pytest

from clients.connection import is_loopback
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving


@pytest.fixture(scope="module")
def local() -> Iterator[httpx.Client]:
    """A client of a service without keys that listens for this machine alone."""
    with serving(Service({"a": FakeJudge()}), only_local=True) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 200),
        ("POST", {"Host": "localhost:8000"}, 200),
        ("POST", {"Host": "[::1]:8000"}, 200),
        ("POST", {"Host": "evil.test"}, 403),
        ("POST", {"Host": "127.0.0.1.evil.test:8000"}, 403),
        ("POST", {"Host": "[::1"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("POST", {"Sec-Fetch-Site": "none"}, 200),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
        ("GET", {"Sec-Fetch-Site": "same-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("POST", {"Origin": "https://evil.test"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Host": "localhost:8000", "Origin": "http://localhost:8000"}, 200),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
    ],
)
def test_pages_of_other_sites_cannot_use_an_open_service(
    local: httpx.Client, method: str, headers: dict[str, str], status: int
) -> None:
    path, body = ("/judge", json.dumps(row())) if method == "POST" else ("/", None)
    answer = local.request(method, path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 403:
        assert answer.json()["error"]["type"] == "forbidden"


def test_with_a_key_any_name_and_page_will_do(judge: FakeJudge) -> None:
    with serving(Service({"a": judge}), keys=["k" * 16]) as client:
        headers = {"Authorization": f"Bearer {'k' * 16}", "Host": "a.test", "Origin": "http://b"}
        assert client.post("/judge", json=row(), headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)
