"""Pictures come as data URLs, and are measured before they are decoded."""

import asyncio
import base64
import csv
import gzip
import io
import json
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import trustme
from fastapi.testclient import TestClient
from PIL import Image

from data_prep.tables.reader import read_table
from judging import CustosError, JudgeRequest
from judging.files.pictures import SCALED_PNG, read_image
from judging.fingerprint import picture_sha256
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.chat.contract import CHAT_CONTRACTS
from serve.chat.messages import parse_chat, read_conversation
from serve.chat.replies import read_prompt
from serve.pictures import received
from serve.pictures.received import RemoteImages, is_public, picture_size
from serve.queue.service import Service
from serve.requests.parse import measured_pictures, parse_call, read_call
from tests.serve.chat.made_up import body
from tests.serve.made_up import FakeJudge, picture, progressive, refused, row
from tests.serve.sockets import serving, wait_until


def test_pictures_come_as_data_urls_whatever_they_are_called(client: TestClient) -> None:
    """Programs that name one after the ending of its file would be refused for its name alone."""
    images = [picture(kind=kind) for kind in ("png", "jpeg", "webp", "gif", "bmp")]
    for name in ("jpg", "PNG", "x-ms-bmp", "octet-stream"):
        images.append(picture(kind="jpeg").replace("image/jpeg", f"image/{name}"))
    for image in images:
        answer = client.post("/judge", json=row(images=[image]))
        assert (answer.status_code, answer.json()["status"]) == (200, "scored"), image[:60]


def test_a_large_picture_is_refused_without_a_line_of_pillows_own(
    recwarn: pytest.WarningsRecorder, client: TestClient
) -> None:
    content = bytearray(base64.b64decode(picture().partition(",")[2]))
    content[16:24] = struct.pack(">II", 10_000, 12_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    source = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    _, message = refused(client, row(images=[source]))
    assert "more than 16,000,000 pixels" in message
    assert not [each for each in recwarn if "decompression" in str(each.message)]


@pytest.mark.parametrize(
    "image",
    [
        *"/etc/passwd file:///etc/passwd http://169.254.169.254/latest https://a.test/a.png".split(),
        *("data:text/html;base64,PHN2Zy8+", "data:image/png,raw"),
        SCALED_PNG + picture().partition(";")[2],
    ],
)
def test_nothing_but_data_urls(client: TestClient, image: str) -> None:
    field, message = refused(client, {"requests": [row(), row(images=[image])]})
    assert field == "requests.1.images"
    assert "only data URLs" in message


@pytest.mark.parametrize(
    "image",
    [
        *("data:image/png;base64,AAAA", "data:;base64,AAAA", "data:image/svg+xml;base64,PHN2Zy8+"),
        *(picture(kind=kind) for kind in ("tiff", "avif", "ppm")),
    ],
)
def test_broken_pictures_say_nothing_of_their_content(client: TestClient, image: str) -> None:
    assert refused(client, row(images=[image])) == ("images", received.UNREADABLE)


@pytest.mark.parametrize("payload", ["!", "AAAAA", "AA==AA==", "AAAA====", "AÁAA"])
def test_bad_base64_is_the_fault_that_is_named(client: TestClient, payload: str) -> None:
    for url in (f"data:image/png;base64,{payload}", f"DATA:;base64,{payload}"):
        field, message = refused(client, {"requests": [row(), row(images=[url])]})
        assert field == "requests.1.images"
        assert "base64" in message
        assert payload not in message


def test_exif_in_very_many_parts_is_refused_at_once(client: TestClient) -> None:
    """A million of them, which is one call, would take half an hour to read."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    part = b"\xff\xe1\x00\x09Exif\0\0x"
    for number, is_taken in ((100, True), (101, False), (300_000, False)):
        content = file.getvalue()[:2] + part * number + file.getvalue()[2:]
        image = f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"
        started = time.process_time()
        if is_taken:
            assert client.post("/judge", json=row(images=[image])).status_code == 200
        else:
            message = refused(client, row(images=[image]))[1]
            assert message == "the EXIF of the picture has more than 100 parts"
        assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("kind", "start", "piece"),
    [
        ("jpeg", 2, b"\xff"),
        ("jpeg", 2, b"\xff\xe9\x00\x02"),
        ("png", 33, b"\0\0\0\0prIv" + struct.pack(">I", zlib.crc32(b"prIv"))),
    ],
)
def test_headers_of_very_many_pieces_are_refused(
    client: TestClient, kind: str, start: int, piece: bytes
) -> None:
    """Three million, a small part of a call, would hold up all others for 2.5 s."""
    content = base64.b64decode(picture(kind=kind).partition(",")[2])
    for number, status in ((100, 200), (30_000, 422)):
        longer = content[:start] + number * piece + content[start:]
        image = f"data:image/{kind};base64,{base64.b64encode(longer).decode()}"
        answer = client.post("/judge", json=row(images=[image]))
        assert answer.status_code == status, (number, answer.text)


def test_scans_are_counted_also_in_a_jpeg_that_names_further_pictures(client: TestClient) -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(
        file, "MPO", save_all=True, append_images=[Image.new("L", (8, 8))]
    )
    content = file.getvalue()
    start = content.index(b"MPF\0") - 4
    index = content[start : start + 2 + int.from_bytes(content[start + 2 : start + 4], "big")]
    jpeg = base64.b64decode(progressive(8, 101).partition(",")[2])
    image = base64.b64encode(jpeg[:2] + index + jpeg[2:]).decode()
    assert refused(client, row(images=[f"data:image/jpeg;base64,{image}"])) == (
        "images",
        "the picture has more than 100 scans",
    )


HOST = "images.test"


def text(content: bytes) -> str:
    return base64.b64encode(content).decode()


FORMS: dict[str, Callable[[bytes], str]] = {
    "lines of MIME": lambda content: (
        "data:image/png;base64," + base64.encodebytes(content).decode().replace("\n", "\r\n")
    ),
    "a line end": lambda content: f"data:image/png;base64,{text(content)}\n",
    "the alphabet of addresses": lambda content: (
        "data:image/png;base64," + base64.urlsafe_b64encode(content).decode()
    ),
    "no padding": lambda content: f"data:image/png;base64,{text(content).rstrip('=')}",
    "a parameter": lambda content: f"data:image/png;charset=utf-8;base64,{text(content)}",
    "upper case": lambda content: f"DATA:IMAGE/PNG;BASE64,{text(content)}",
    "no kind": lambda content: f"data:;base64,{text(content)}",
    "bytes of any kind": lambda content: f"data:application/octet-stream;base64,{text(content)}",
    "a space in front": lambda content: f" data:image/png;base64, {text(content)}",
    "escapes": lambda content: f"data:image/png;base64,{quote(text(content), safe='')}",
    "no header": lambda content: base64.encodebytes(content).decode(),
}
"""Base64 as programs write it."""


def noise(kind: str) -> bytes:
    """A picture whose base64 has every character, and padding."""
    for size in range(40, 60):
        file = io.BytesIO()
        Image.effect_noise((size, 30), 90).save(file, kind)
        if {"+", "/", "="} <= set(text(file.getvalue())):
            return file.getvalue()
    raise AssertionError("no such picture")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_base64_is_the_same_picture(
    form: str, client: TestClient, tmp_path: Path
) -> None:
    """The same verdict, fingerprint of the picture and pixels: in calls, chats and tables."""
    plain, rows, table = (tmp_path / name for name in ("plain", "rows.jsonl", "rows.csv"))
    for kind in ("PNG", "JPEG"):
        content = noise(kind)
        plain.write_bytes(content)
        source = FORMS[form](content)
        answer = client.post("/judge", json=row(images=[source]))
        assert (answer.status_code, answer.json()["status"]) == (200, "scored"), answer.text
        qa = CHAT_CONTRACTS.get("qa")
        prompt = body(qa, qa.layouts[0])
        parts = [
            {"type": "text", "text": prompt["messages"][0]["content"]},
            {"type": "image_url", "image_url": {"url": source}},
        ]
        chat = {**prompt, "messages": [{"role": "user", "content": parts}]}
        assert client.post("/v1/chat/completions", json=chat).status_code == 200
        rows.write_text(json.dumps(row(images=[source])))
        with table.open("w", newline="") as file:
            fields = ("question", "references", "response", "images")
            csv.writer(file).writerows((fields, ("?", "x", "y", source)))
        requests = [JudgeRequest.model_validate(row(images=[source]))]
        requests += [each for path in (rows, table) for _, each in read_table(path, JudgeRequest)]
        for request in requests:
            [image] = request.images
            assert picture_sha256(image) == picture_sha256(str(plain))
            assert read_image(image).tobytes() == read_image(str(plain)).tobytes()


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


def test_a_look_up_that_hangs_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received, "CALL_SECONDS", 0.3)
    gate = threading.Event()

    def resolve(host: str, port: int) -> Sequence[str]:
        gate.wait(20)
        return []

    start = time.monotonic()
    assert "too slow" in refusal(RemoteImages([HOST], 1000, resolve=resolve), f"https://{HOST}/a")
    assert time.monotonic() - start < 15
    gate.set()


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
    with (
        serving(service, tuple(keys.values())) as client,
        ThreadPoolExecutor(20) as pool,
    ):

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


def test_public_addresses() -> None:
    assert is_public("93.184.216.34")
    assert is_public("2001:4860:4860::8888")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "[::1]", "a.test/path", "me@a.test", "", "a:b"]
)
def test_hosts_are_names(host: str) -> None:
    with pytest.raises(CustosError, match="expected a host name"):
        RemoteImages([host], 1000)
