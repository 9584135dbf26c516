"""Photographs that EXIF turns: what a judge and other servers see of them."""

from __future__ import annotations

import asyncio
import base64
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from clients.messages import encode_message, picture_url
from judging.files.pictures import PictureSize, check_pictures, picture_size, read_image
from judging.files.rgb import orientation
from judging.messages import Message
from judging.models.backbones import Backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from serve.pictures.decoders import Decoders
from tests.judging.made_up import ask

ORIENTATION_TAG = 0x0112
SIZE = 96, 64
FORMATS = ("jpeg", "png", "webp", "tiff", "avif", "mpo")


def drawing() -> Image.Image:
    """A picture of which no turn is another."""
    picture = Image.new("RGB", SIZE, "white")
    picture.paste((200, 0, 0), (0, 0, 48, 16))
    picture.paste((0, 0, 200), (64, 32, 96, 64))
    return picture


def turned(number: int, kind: str = "png") -> bytes:
    """A picture whose EXIF states an orientation."""
    exif = Image.Exif()
    exif[ORIENTATION_TAG] = number
    return saved(kind, exif.tobytes())


def saved(kind: str, exif: bytes) -> bytes:
    file = io.BytesIO()
    drawing().save(file, kind, exif=exif)
    return file.getvalue()


def url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def pixels(picture: Image.Image) -> list[list[list[int]]]:
    return np.asarray(picture).tolist()  # type: ignore[no-any-return]


def decoded(source: str, size: PictureSize | None = None) -> str:
    """Decode a picture as the service's decoding process does."""

    async def main() -> str:
        decoders = Decoders(30, num_processes=1)
        try:
            return await decoders.decode(source, size)
        finally:
            await decoders.close()

    return asyncio.run(main())


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("number", range(1, 9))
def test_a_judge_sees_pictures_upright(tmp_path: Path, number: int, kind: str) -> None:
    file = tmp_path / f"photograph.{kind}"
    file.write_bytes(turned(number, kind))
    with Image.open(file) as stored:
        upright = ImageOps.exif_transpose(stored).convert("RGB")
    check_pictures([str(file)])
    for source in (str(file), url(file.read_bytes())):
        assert pixels(read_image(source)) == pixels(upright)
        assert picture_size(source) == upright.size == (SIZE if number < 5 else SIZE[::-1])


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp"])
def test_the_service_sees_the_same(kind: str) -> None:
    source = url(turned(6, kind))
    assert pixels(read_image(decoded(source))) == pixels(read_image(source))
    assert picture_size(decoded(source, PictureSize(32, 48))) == (32, 48)


def test_prompts_are_measured_upright(tiny: Backbone) -> None:
    """A narrow picture and its turned twin have grids that differ, and the size that was said."""
    encoder, task = Encoder(tiny, shows_all_pictures=True), get_task("hieval-qs")
    grids = []
    for number in (1, 6):
        request = ask(images=(url(turned(number)),))
        [prompt], [size] = encoder.encode([(task, request)]), encoder.measure([(task, request)])
        assert size.suffix_tokens == len(prompt.suffix_ids)
        grids.append(prompt.vision["image_grid_thw"][0].tolist())
    lying, upright = grids
    assert lying[1] < lying[2]
    assert upright == [lying[0], lying[2], lying[1]]


def test_nothing_downstream_can_turn_it_again() -> None:
    assert read_image(url(turned(6, "jpeg"))).getexif() == {}


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_other_servers_get_upright_pixels(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"photograph.{kind}"
    file.write_bytes(turned(6, kind))
    for source in (str(file), url(file.read_bytes())):
        [part, _] = encode_message(Message(role="user", text="a", images=(source,)))["content"]
        sent = part["image_url"]["url"]
        header, _, content = sent.partition(",")
        assert header == "data:image/jpeg;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
            assert picture.getexif() == {}
            assert picture.size == SIZE[::-1]
            sent_pixels = np.asarray(picture, np.int16)
        difference = sent_pixels - np.asarray(read_image(source), np.int16)
        assert np.abs(difference).mean() < 2


def test_other_servers_get_upright_files_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "photograph.jpg"
    file.write_bytes(turned(1, "jpeg"))
    [part, _] = encode_message(Message(role="user", text="a", images=(str(file),)))["content"]
    sent = base64.b64decode(part["image_url"]["url"].partition(",")[2])
    assert sent == file.read_bytes()


def test_a_jpeg_that_names_further_pictures_is_sent_as_a_jpeg(tmp_path: Path) -> None:
    """Phones make such files; no server knows ``image/mpo``."""
    file = tmp_path / "photograph.jpg"
    drawing().save(file, "mpo", save_all=True, append_images=[drawing()])
    with Image.open(file) as picture:
        assert picture.format == "MPO"
    assert picture_url(str(file)).startswith("data:image/jpeg;base64,")


def entry(tag: int, kind: int, count: int, value: int) -> bytes:
    return struct.pack("<HHII", tag, kind, count, value)


def directory(*entries: bytes) -> bytes:
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries)


HOSTILE = {
    "absurd value": directory(entry(ORIENTATION_TAG, 3, 1, 9)),
    "zero": directory(entry(ORIENTATION_TAG, 3, 1, 0)),
    "a text": directory(entry(ORIENTATION_TAG, 2, 4_000_000_000, 4_000_000_000)),
    "cut off": directory(entry(ORIENTATION_TAG, 3, 1, 6))[:-6],
    "no directory": b"II*\0",
    "a directory far away": b"II*\0\xff\xff\xff\xff",
    "a directory that never ends": b"II*\0" + struct.pack("<IH", 8, 65535),
    "another byte order": b"XX*\0" + bytes(99),
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["png", "webp"])
def test_broken_exif_changes_nothing(name: str, kind: str) -> None:
    plain, hostile = url(saved(kind, b"")), url(saved(kind, HOSTILE[name]))
    assert pixels(read_image(hostile)) == pixels(read_image(plain))
    assert picture_size(hostile) == SIZE


@given(st.binary(max_size=200), st.sampled_from([b"", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08"]))
def test_any_bytes_are_exif_of_some_orientation(content: bytes, start: bytes) -> None:
    picture = drawing()
    picture.info["exif"] = start + content
    assert orientation(picture) in range(1, 9)


def test_huge_exif_is_no_work() -> None:
    """65,535 entries, each of which claims the whole file as its value."""
    picture = drawing()
    entries = (entry(1000 + n % 60_000, 7, 2**24, 0) for n in range(65_535))
    picture.info["exif"] = directory(*entries) + bytes(2**24)
    assert orientation(picture) == 1


def test_exif_behind_the_pixels_does_not_count() -> None:
    """A header says the same size as the decoded picture, whatever stands at the end."""
    content = saved("png", b"")
    data = directory(entry(ORIENTATION_TAG, 3, 1, 6))
    chunk = struct.pack(">I", len(data)) + b"eXIf" + data
    chunk += struct.pack(">I", zlib.crc32(chunk[4:]))
    end = content.rindex(b"IEND") - 4
    source = url(content[:end] + chunk + content[end:])
    assert picture_size(source) == read_image(source).size == SIZE


def test_a_text_that_is_named_exif() -> None:
    picture = drawing()
    picture.info["exif"] = "II*\0"
    assert orientation(picture) == 1
