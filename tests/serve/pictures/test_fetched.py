"""Pictures are fetched from hosts that the operator allows, and from no others."""

import asyncio
import gzip
import io
import json
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

import httpx
import pytest
import trustme
from PIL import Image

from judging import CustosError
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.chat.contract import CHAT_CONTRACTS
from serve.chat.messages import parse_chat, read_conversation
from serve.chat.replies import read_prompt
from serve.pictures import received
from serve.pictures.received import RemoteImages, is_public, picture_size
from serve.queue.service import Service
from serve.requests.parse import measured_pictures, parse_call, read_call
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving, wait_until

HOST = "images.test"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Web)
        self.server.calls.append((self.headers["Host"], self.path))
        self.server.encodings.append(self.headers["Accept-Encoding"])
        if self.path.startswith("/slow"):
            return self.send_slowly()
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data")
            self.end_headers()
            return
        kind = "text/html" if self.path == "/page" else "image/png"
        large = png(noisy=True)
        content = {"/huge": b"x" * 300_000, "/large": large}.get(self.path, png())
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Type", kind)
        if self.path == "/packed":
            content = gzip.compress(content)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def send_slowly(self) -> None:
        """Send a header or a body that has no end, and is never silent for long."""
        start = b"X: " if self.path == "/slow-header" else b"Content-Type: image/png\r\n\r\n"
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + start)
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.1)
        except OSError:  # the service has hung up
            self.close_connection = True
            assert isinstance(self.server, Web)
            self.server.num_left += 1

    def log_message(self, *_: object) -> None:
        pass


def png(noisy: bool = False) -> bytes:
    file = io.BytesIO()
    noise = Random(0).randbytes(3 * 120 * 120)
    picture = Image.frombytes("RGB", (120, 120), noise) if noisy else Image.new("RGB", (9, 7))
    picture.save(file, "png")
    return file.getvalue()


class Web(ThreadingHTTPServer):
    """Remembers the calls to it, and how many of its slow answers somebody left."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.calls: list[tuple[str, str]] = []
        self.encodings: list[str] = []
        self.num_left = 0


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def web(authority: trustme.CA) -> Iterator[Web]:
    """An https server for HOST on loopback."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)
    with Web(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetcher(web: Web, authority: trustme.CA, name: str = HOST) -> RemoteImages:
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    return RemoteImages(
        [f"{name}:{web.server_port}"],
        200_000,
        resolve=lambda host, port: ["127.0.0.1"],
        is_allowed=lambda address: True,
        trust=trust,
    )


def fetch(images: RemoteImages, address: str) -> str:
    [(source,)] = asyncio.run(images.fetch_all([((address,), "requests.2.images")]))
    return source


def refusal(images: RemoteImages, address: str) -> str:
    with pytest.raises(ApiError) as caught:
        fetch(images, address)
    assert (caught.value.status, caught.value.field) == (422, "requests.2.images")
    assert "127.0.0.1" not in caught.value.message
    return caught.value.message


def test_fetches_by_the_checked_address_under_the_hosts_own_name(
    web: Web, authority: trustme.CA
) -> None:
    images = fetcher(web, authority)
    source = fetch(images, f"https://{HOST}:{web.server_port}/a.png?b=c")
    assert picture_size(source, "images", Limits()) == (9, 7)
    assert web.calls == [(f"{HOST}:{web.server_port}", "/a.png?b=c")]
    assert web.encodings == ["identity"]


def test_the_chat_route_takes_the_same_addresses(web: Web, authority: trustme.CA) -> None:
    contract = CHAT_CONTRACTS.get("truthful-pair")
    address = f"https://{HOST}:{web.server_port}/a.png"
    parts = [
        {"type": "image_url", "image_url": {"url": address}},
        {"type": "text", "text": contract.layouts[0].payload(right=True)},
    ]
    body = {"model": "custos/truthful-pair", "messages": [{"role": "user", "content": parts}]}
    chat = parse_chat(json.dumps(body).encode(), Limits())
    judges = {"fake": FakeJudge(tasks=("truthful-pair",))}
    service = Service(judges, remote_images=fetcher(web, authority))
    request = read_prompt(chat, contract, service, "fake").request
    assert request.images == (address,)
    groups = [(request.images, "images")]
    [((source,), _)] = asyncio.run(measured_pictures(groups, service))
    assert picture_size(source, "images", Limits()) == (9, 7)
    [turn] = asyncio.run(read_conversation(chat, service))
    assert turn.message.images == (source,)
    for work in (
        read_conversation(chat, Service(judges)),
        measured_pictures(groups, Service(judges)),
    ):
        with pytest.raises(ApiError, match="only data URLs"):
            asyncio.run(work)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/moved", "redirects are not followed"),
        ("/page", "no JPEG"),
        ("/missing", "no JPEG"),
        ("/huge", "too large"),
        ("/packed", "no JPEG"),
    ],
)
def test_what_is_no_picture_is_refused(
    web: Web, authority: trustme.CA, path: str, says: str
) -> None:
    images = fetcher(web, authority)
    assert says in refusal(images, f"https://{HOST}:{web.server_port}{path}")
    assert len(web.calls) == 1


def test_another_hosts_certificate_is_refused(web: Web, authority: trustme.CA) -> None:
    images = fetcher(web, authority, "other.test")
    assert "could not be fetched" in refusal(images, f"https://other.test:{web.server_port}/a.png")
    assert web.calls == []


@pytest.mark.parametrize(
    "address",
    (
        "https://example.org/a https://images.test.example.org/a "
        "https://images.test@169.254.169.254/a https://me:you@images.test/a "
        "https://images.test:444/a https://2130706433/a "
        "https://0x7f000001/a https://0177.0.0.1/a https://127.1/a https://[::1]/a "
        "https://[::ffff:127.0.0.1]/a https://[::1/a https:///a https:images.test/a"
    ).split(),
)
def test_other_addresses_are_never_looked_up(address: str) -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(f"looked up {host}")

    assert "not fetched" in refusal(RemoteImages([HOST], 1000, resolve=resolve), address)


@pytest.mark.parametrize("address", ["http://images.test/a.png", "file:///etc/passwd", "ftp://x"])
def test_other_schemes_stay_and_fail_as_pictures(address: str) -> None:
    source = fetch(RemoteImages([HOST], 1000), address)
    with pytest.raises(ApiError, match="only data URLs"):
        picture_size(source, "images", Limits())


INNER = (
    "127.0.0.1 10.0.0.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 240.0.0.1 255.255.255.255 "
    "192.0.0.9 192.88.99.1 198.18.0.1 ::1 fe80::1 fd00::1 fec0::1 4000::1 5f00::1 2002:7f00:1:: "
    "::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b:1::7f00:1 ::7f00:1 93.184.216.34,127.0.0.1"
).split()


@pytest.mark.parametrize("addresses", [[], *(inner.split(",") for inner in INNER)])
def test_a_name_that_points_inwards_is_not_connected_to(addresses: list[str]) -> None:
    assert not (addresses and all(map(is_public, addresses)))
    images = RemoteImages([HOST], 1000, resolve=lambda host, port: addresses)
    assert "could not be fetched" in refusal(images, f"https://{HOST}/a.png")


def test_nothing_is_fetched_for_a_call_that_is_refused() -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(f"looked up {host}")

    images = RemoteImages([HOST], 1000, resolve=resolve)
    allowed = f"https://{HOST}/a.png"
    with pytest.raises(ApiError, match="not fetched from this address") as caught:
        groups = [((allowed,), "requests.0.images"), (("https://b.test/",), "requests.1")]
        asyncio.run(images.fetch_all(groups))
    assert caught.value.field == "requests.1"
    service = Service({"a": FakeJudge()}, remote_images=images)
    for rows, says in (
        ([row(images=[allowed] * 9)], "more than 8 pictures"),
        ([row(images=[allowed]), row(references=[])], "needs it"),
        ([row(images=[allowed]), row(images=[allowed] * 9)], "more than 8 pictures"),
    ):
        with pytest.raises(ApiError, match=says):
            rows_body = json.dumps({"requests": rows}).encode()
            asyncio.run(read_call(rows_body, service, parse_call))
    parts = [{"type": "image_url", "image_url": {"url": allowed}}]
    body = {"model": "fake", "messages": [{"role": "user", "content": parts * 3}] * 3}
    with pytest.raises(ApiError, match="more than 8 pictures"):
        chat = parse_chat(json.dumps(body).encode(), Limits())
        asyncio.run(read_conversation(chat, service))


def test_the_bytes_of_a_call_are_counted_together(web: Web, authority: trustme.CA) -> None:
    images = fetcher(web, authority)
    images.max_bytes = int(2.5 * len(png()))
    address = f"https://{HOST}:{web.server_port}/a.png"
    groups = [((address,), f"requests.{number}.images") for number in range(3)]
    assert len(asyncio.run(images.fetch_all(groups[:2]))) == 2
    with pytest.raises(ApiError, match="too large") as caught:
        asyncio.run(images.fetch_all(groups))
    assert caught.value.field == "requests.2.images"


def test_pictures_in_hand_are_bounded_as_bodies_are(web: Web, authority: trustme.CA) -> None:
    judge = FakeJudge()
    judge.gate.clear()
    limits = Limits(held_bytes=150_000)  # a picture takes 58,000 twice: as it came, and decoded
    service = Service({"a": judge}, limits, remote_images=fetcher(web, authority))
    body = row(images=[f"https://{HOST}:{web.server_port}/large"])
    with serving(service) as client, ThreadPoolExecutor(1) as pool:
        held = pool.submit(client.post, "/judge", json=body)
        wait_until(lambda: judge.batches != [])
        assert client.post("/judge", json=body).status_code == 429
        judge.gate.set()
        assert held.result().status_code == 200
        assert client.post("/judge", json=body).status_code == 200


@pytest.mark.parametrize("leaves", [False, True])
def test_pictures_are_fetched_no_longer_than_their_caller_waits(
    web: Web, authority: trustme.CA, leaves: bool
) -> None:
    body = row(images=[f"https://{HOST}:{web.server_port}/slow-body"])
    images = fetcher(web, authority)
    with serving(Service({"a": FakeJudge()}, remote_images=images)) as client:
        deadline = {} if leaves else {"X-Deadline-Ms": "1500"}
        with suppress(httpx.ReadTimeout):
            answer = client.post("/judge", json=body, headers=deadline, timeout=3)
            assert answer.status_code == 504
        assert len(web.calls) == 1
        wait_until(lambda: web.num_left == 1, 4)


@pytest.mark.parametrize("path", ["/slow-header", "/slow-body"])
def test_all_pictures_of_a_call_have_one_time_limit(
    web: Web, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(received, "CALL_SECONDS", 0.5)
    start = time.monotonic()
    says = refusal(fetcher(web, authority), f"https://{HOST}:{web.server_port}{path}")
    assert says == "the call's pictures are too slow to come"
    assert time.monotonic() - start < 15


def test_slow_hosts_hold_up_no_other_calls(
    web: Web, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pictures of one key hang; others, and pictures of another key, are served."""
    gate, keys = threading.Event(), {name: f"{name}'s-key-is-long-enough" for name in ("a", "b")}
    monkeypatch.setattr(received, "CALLS_AT_ONCE", 4)

    def resolve(host: str, port: int) -> Sequence[str]:
        if host == "slow.test":
            gate.wait(20)
        return ["127.0.0.1"]

    images = fetcher(web, authority)
    images.endpoints.add(("slow.test", 443))
    images._resolve = resolve
    service = Service({"a": FakeJudge()}, remote_images=images)
    with serving(service, tuple(keys.values())) as client, ThreadPoolExecutor(20) as pool:

        def ask(name: str, **fields: Any) -> httpx.Response:
            headers = {"Authorization": f"Bearer {keys[name]}"}
            return client.post("/judge", json=row(**fields), headers=headers)

        slow = "https://slow.test/a.png"
        calls = [pool.submit(ask, "a", images=[slow]) for _ in range(20)]
        time.sleep(0.5)
        start = time.monotonic()
        assert ask("a").status_code == 200
        address = f"https://{HOST}:{web.server_port}/a.png"
        assert ask("b", images=[address]).status_code == 200
        assert time.monotonic() - start < 5
        assert not any(call.done() for call in calls)
        gate.set()
        assert {call.result().status_code for call in calls} == {422}  # nobody answers there


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "[::1]", "a.test/path", "me@a.test", "", "a:b"]
)
def test_hosts_are_names(host: str) -> None:
    with pytest.raises(CustosError, match="expected a host name"):
        RemoteImages([host], 1000)
