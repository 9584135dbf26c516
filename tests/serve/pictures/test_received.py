"""Pictures as data URLs: measured before other processes decode them."""

import asyncio
import base64
import csv
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import zlib
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image

from data_prep.tables.reader import read_table
from judging import JudgeRequest
from judging.errors import FieldError
from judging.files.pictures import SCALED_PNG, PictureSize, picture_size, read_image
from judging.fingerprint import picture_sha256
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from serve.calls.context import AccessKey, access_key
from serve.chat.contract import CHAT_CONTRACTS
from serve.pictures import decode, received
from serve.pictures.received import Decoders
from tests.serve.chat.made_up import body
from tests.serve.made_up import picture, progressive, refused, row


def test_pictures_come_as_data_urls_whatever_they_are_called(client: TestClient) -> None:
    """Programs that name one after the ending of its file would be refused for its name alone."""
    images = [picture(kind=kind) for kind in ("png", "jpeg", "webp", "gif", "bmp")]
    for name in ("jpg", "PNG", "x-ms-bmp", "octet-stream"):
        images.append(picture(kind="jpeg").replace("image/jpeg", f"image/{name}"))
    for image in images:
        answer = client.post("/judge", json=row(images=[image]))
        assert (answer.status_code, answer.json()["status"]) == (200, "scored"), image[:60]


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


def drawing(width: int, height: int, kind: str, mode: str = "RGB") -> str:
    """A picture of noise, in which every pixel counts."""
    draws = np.random.default_rng(width).integers(0, 256, (height, width, 4), dtype=np.uint8)
    file = io.BytesIO()
    image = Image.fromarray(draws).convert(mode)
    image.save(file, kind, **({"lossless": True} if kind == "webp" else {}))
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def decode_all(
    sources: list[str], sizes: list[PictureSize | None], seconds: float = 30
) -> list[str]:
    async def main() -> list[str]:
        decoders = Decoders(seconds, num_processes=2)
        try:
            return await asyncio.gather(*map(decoders.decode, sources, sizes))
        finally:
            await decoders.close()

    return asyncio.run(main())


def test_the_model_sees_what_it_saw_without_other_processes(small: str) -> None:
    """Pictures above the limit, below it, of other modes and formats, and one too narrow."""
    tiny = load_backbone(small, dtype="float32", device="cpu")
    backbone = tiny.with_pixels(max_pixels=200_000)
    sources = [
        drawing(900, 700, "png"),
        drawing(800, 611, "jpeg"),
        drawing(1000, 300, "webp", "RGBA"),
        drawing(300, 200, "png", "P"),
        drawing(90, 60, "png", "LA"),
        drawing(401, 490, "png", "L"),
        drawing(9000, 56, "png"),
        drawing(320, 200, "gif"),
        drawing(640, 480, "bmp"),
    ]
    sizes = [backbone.scaled_size(picture_size(source)) for source in sources]
    assert [size is not None for size in sizes[:6]] == [True, True, True, False, False, False]
    smaller = decode_all(sources, sizes)
    encoder, task = Encoder(backbone, shows_all_pictures=True), get_task("hieval-qs")
    for before, after, size in zip(sources, smaller, sizes, strict=True):
        given, prepared = encoder.encode(
            [(task, JudgeRequest.model_validate(row(images=[url]))) for url in (before, after)]
        )
        assert given.suffix_ids == prepared.suffix_ids
        assert given.scaled_pictures == prepared.scaled_pictures
        assert picture_size(after) == (size or picture_size(before))
        torch.testing.assert_close(
            given.vision["pixel_values"], prepared.vision["pixel_values"], rtol=0, atol=0
        )


@pytest.mark.parametrize("mode", ["I;16", "CMYK"])
def test_pictures_are_decoded_as_elsewhere(mode: str) -> None:
    """At the size of the largest that the service takes."""
    file = io.BytesIO()
    kind = "jpeg" if mode == "CMYK" else "png"
    color: Any = 30_000 if mode == "I;16" else (9, 99, 0, 90)
    Image.new(mode, (4000, 4000), color).save(file, kind)
    source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
    [decoded] = decode_all([source], [None])
    assert read_image(decoded).getpixel((0, 0)) == read_image(source).getpixel((0, 0))


def test_what_cannot_be_decoded_stops_nothing() -> None:
    async def main() -> None:
        decoders = Decoders(30, num_processes=1)
        broken = picture().replace("A", "B", 9)
        tiff = picture(kind="tiff")
        for bad in (broken, tiff, "data:image/png;base64,?"):
            with pytest.raises(FieldError, match="not a readable picture"):
                await decoders.decode(bad, None)
        large = await decoders.decode(picture((30, 20), color="red"), None)
        assert read_image(large).getpixel((29, 19)) == (255, 0, 0)
        await decoders.close()

    asyncio.run(main())


def test_memory_is_limited() -> None:
    """A picture of 1.4 GB, which the service refuses by its header, is no picture here."""
    file = io.BytesIO()
    Image.new("P", (13_000, 13_000)).save(file, "PNG", transparency=0, compress_level=1)
    bomb = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    with pytest.raises(FieldError, match="not a readable picture"):
        decode_all([bomb], [None])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_to_all_processes_lets_pictures_of_accepted_calls_be_decoded(name: str) -> None:
    """Ctrl-C goes to all processes of the terminal, systemd's SIGTERM to all of the service."""
    program = f"""
import asyncio, os, signal, time
from serve.pictures.received import Decoders

async def main():
    decoders = Decoders(30, num_processes=1)
    await decoders.decode({picture()!r}, None)
    os.killpg(0, signal.{name})
    time.sleep(0.5)
    await decoders.decode({picture()!r}, None)
    await decoders.close()

signal.signal(signal.{name}, lambda *_: None)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, start_new_session=True, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads the environment of a process")
def test_the_processes_get_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOS_API_KEYS", "a-key-of-many-characters")

    async def main() -> list[bytes]:
        decoders = Decoders(30)
        await decoders.decode(picture(), None)
        environments = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and _is_decoder(folder, os.getpid()):
                environments.append((folder / "environ").read_bytes())
        await decoders.close()
        return environments

    environments = asyncio.run(main())
    assert environments
    assert not any(b"CUSTOS_API_KEYS" in environment for environment in environments)


def _is_decoder(process: Path, parent: int) -> bool:
    try:
        command = (process / "cmdline").read_text()
        status = (process / "status").read_text()
    except OSError:
        return False
    return decode.__file__ in command and re.search(rf"PPid:\s*{parent}\b", status) is not None


def test_a_picture_whose_process_is_killed_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the system does when memory is short; a picture that kills two is not readable."""

    async def decoded(num_killed: int) -> str:
        decoders = Decoders(30, num_processes=1)
        started: list[Process] = []
        start = decoders._start

        async def noting_start() -> Process:
            started.append(await start())
            return started[-1]

        monkeypatch.setattr(decoders, "_start", noting_start)
        await decoders.decode(picture(), None)  # so that one is idle
        left = num_killed
        pack = decode.QUESTION.pack

        def kill_and_pack(*question: int) -> bytes:
            nonlocal left
            if left:
                left -= 1
                started[-1].kill()
            return pack(*question)

        monkeypatch.setattr(decode, "QUESTION", SimpleNamespace(pack=kill_and_pack))
        try:
            return await decoders.decode(picture(), None)
        finally:
            monkeypatch.undo()
            await decoders.close()

    assert asyncio.run(decoded(1)).startswith("data:image/png")
    with pytest.raises(FieldError):
        asyncio.run(decoded(2))


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


def test_the_pictures_of_one_key_leave_a_process_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the one process that a key may have, as its large pictures do for seconds."""
    monkeypatch.setattr("serve.pictures.received.num_cores", lambda: 2)

    async def main() -> None:
        decoders = Decoders(60)
        access_key.set(AccessKey("alice", b""))
        await decoders.decode(picture(), None)
        stopped = list(decoders._idle)
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        waiting = [asyncio.create_task(decoders.decode(picture(), None)) for _ in range(4)]
        await asyncio.sleep(0)
        access_key.set(AccessKey("bob", b""))
        await asyncio.wait_for(decoders.decode(picture(), None), 30)
        assert not any(task.done() for task in waiting)
        for process in stopped:
            process.send_signal(signal.SIGCONT)
        await asyncio.gather(*waiting)
        await decoders.close()

    asyncio.run(main())


def test_the_end_waits_for_no_picture_whose_call_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave while a part of the picture has come, and asyncio does not read on."""
    feed = asyncio.StreamReader.feed_data

    async def main() -> None:
        decoders = Decoders(30, num_processes=1)
        source = drawing(900, 700, "png")
        call = asyncio.create_task(decoders.decode(source, None))

        def feed_and_leave(reader: Any, data: bytes) -> None:
            feed(reader, data)
            if reader._paused:
                call.cancel()

        monkeypatch.setattr(asyncio.StreamReader, "feed_data", feed_and_leave)
        await asyncio.wait({call})
        assert call.cancelled()
        await asyncio.wait_for(decoders.close(), 20)

    asyncio.run(main())
