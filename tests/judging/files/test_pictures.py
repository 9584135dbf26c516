"""Pictures whole and broken, as files and as data URLs."""

from __future__ import annotations

import base64
import io
import os
import re
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from clients.messages import picture_url
from data_prep.tables.cells import save_image
from judging.errors import CustosError, FieldError
from judging.files.pictures import check_pictures, megapixels, picture_size, read_image
from judging.fingerprint import picture_sha256
from tests.tiny import save_picture

FORMATS = ("jpg", "png", "webp", "gif", "bmp", "avif", "tiff")


@pytest.fixture(scope="module", params=FORMATS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of each format."""
    return Path(save_picture(tmp_path_factory.mktemp("whole") / f"a.{request.param}", 70, 50))


def _data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _is_readable(source: str) -> bool:
    try:
        read_image(source)
    except FieldError:
        return False
    return True


def test_whole_pictures_are_taken(whole: Path) -> None:
    sources = [str(whole), _data_url(whole.read_bytes())]
    check_pictures(sources)
    assert [picture_size(source) for source in sources] == [(70, 50)] * 2
    assert picture_size(sources[0]).pixels == 3500


@given(st.data())
def test_cut_pictures_are_refused_where_they_cannot_be_read(
    whole: Path, data: st.DataObject
) -> None:
    content = whole.read_bytes()
    source = _data_url(content[: data.draw(st.integers(0, len(content) - 1))])
    if _is_readable(source):  # some decoders do without the last bytes
        return
    with pytest.raises(FieldError, match="^field 'images': data URL is not a readable picture$"):
        check_pictures([source])


def test_a_picture_without_its_end_is_taken_if_it_can_be_read(tmp_path: Path) -> None:
    picture = Path(save_picture(tmp_path / "a.jpg", 70, 50))
    picture.write_bytes(picture.read_bytes() + b"\0" * 9000)  # the end is far from the end
    check_pictures([str(picture)])


@pytest.mark.parametrize("content", [b"", b"text", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xd9"])
def test_what_is_no_picture(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(content)
    for check in (lambda source: check_pictures([source]), picture_size, read_image):
        for source in (str(file), _data_url(content), str(tmp_path), str(tmp_path / "none.png")):
            with pytest.raises(FieldError, match="is not a readable picture"):
                check(source)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.png", None, "there is no such file"),
        ("a\0b.png", None, "there is no such file"),
        ("", None, "it is no regular file"),
        ("a" * 400, None, "File name too long"),
        ("empty.png", b"", "the file is empty"),
        (
            "lfs.png",
            b"version https://git-lfs.github.com/spec/v1\n",
            "this is a pointer of Git LFS",
        ),
        ("a.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "save it as JPEG, PNG or WebP"),
    ],
)
def test_why_a_picture_cannot_be_read(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        FieldError, match=re.escape(f"'{path}' is not a readable picture: {reason}")
    ):
        check_pictures([str(path)])


def test_a_huge_picture_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_picture(tmp_path / "a.png", 20, 30)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 250)
    with pytest.raises(FieldError, match=r"a\.png' .*: it has more than 500 pixels; scale"):
        picture_size(path)


def test_addresses_are_not_fetched() -> None:
    with pytest.raises(FieldError, match=r"'https://a\.org/a\.png' .*: addresses are not fetched"):
        check_pictures(["https://a.org/a.png"])


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_base64_without_its_beginning_is_not_shown(tmp_path: Path, kind: str) -> None:
    small, large = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (2, 2)).save(small, kind)
    Image.effect_noise((60, 60), 90).save(large, kind)
    for content in (small, large):
        text = base64.b64encode(content.getvalue()).decode()
        for source in (text, f"{tmp_path}/{text}"):
            with pytest.raises(FieldError) as caught:
                check_pictures([source])
            assert str(caught.value) == (
                "field 'images': base64 is not a readable picture: put 'data:image/jpeg;base64,' "
                "(or png, webp) in front"
            )


def test_megapixels() -> None:
    assert [megapixels(n) for n in (1024 * 1024, 12_192_768, 200_704)] == [
        *("1.0 MP", "12.2 MP", "0.20 MP")
    ]


def test_devices_and_pipes_end_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    for source in ("/dev/zero", str(pipe), str(tmp_path)):
        for read in (read_image, picture_size, picture_url, lambda name: check_pictures([name])):
            with pytest.raises(FieldError, match="is not a readable picture"):
                read(source)
        assert picture_sha256(source) == "unreadable"


def test_grey_of_16_bits_keeps_its_shades(tmp_path: Path) -> None:
    shades = np.linspace(0, 2**16 - 1, 256).astype(np.uint16).reshape(16, 16)
    Image.fromarray(shades).save(tmp_path / "grey.png")
    seen = np.asarray(read_image(str(tmp_path / "grey.png")))
    assert (seen[..., 0].flatten() == range(256)).all()
    assert (seen[..., 0] == seen[..., 2]).all()


@pytest.mark.parametrize("white_is_zero", [False, True])
def test_a_tiff_of_16_bits_has_the_shades_of_a_png(tmp_path: Path, white_is_zero: bool) -> None:
    shades = np.linspace(0, 2**16 - 1, 256).astype(np.uint16).reshape(16, 16)
    tags = {262: 0} if white_is_zero else {}
    stored = 2**16 - 1 - shades if white_is_zero else shades
    Image.fromarray(stored).save(tmp_path / "grey.tiff", tiffinfo=tags)
    seen = np.asarray(read_image(str(tmp_path / "grey.tiff")))
    assert (seen[..., 1].flatten() == range(256)).all()


def test_grey_of_12_bits_keeps_its_shades(tmp_path: Path) -> None:
    """Two pixels of 12 bits, 0xFFF and 0x800, as a TIFF in three bytes."""
    entries = [(256, 2), (257, 1), (258, 12), (259, 1), (262, 1), (273, 8), (278, 1), (279, 3)]
    ifd = b"".join(struct.pack("<HHII", tag, 4 if tag == 273 else 3, 1, n) for tag, n in entries)
    head = struct.pack("<2sHI3sx", b"II", 42, 12, bytes([0xFF, 0xF8, 0x00]))
    file = tmp_path / "grey.tiff"
    file.write_bytes(head + struct.pack("<H", len(entries)) + ifd + bytes(4))
    seen = np.asarray(read_image(str(file)))
    assert seen[0, :, 0].tolist() == [255, 127]


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int16, np.float32])
def test_measurements_whose_white_is_not_known_are_refused(tmp_path: Path, kind: type) -> None:
    """Pillow's own conversion makes nearly all of them black or white."""
    file = tmp_path / "a.tiff"
    if kind is np.int16:
        Image.fromarray(np.full((9, 9), 700, np.uint16)).save(file, tiffinfo={339: 2})
    else:
        Image.fromarray(np.full((9, 9), 0.4 if kind is np.float32 else 700, kind)).save(file)
    for source in (str(file), _data_url(file.read_bytes())):
        for read in (read_image, lambda source: check_pictures([source])):
            with pytest.raises(FieldError, match="its shades have no fixed white; save it with 8"):
                read(source)
    with pytest.raises(FieldError, match="a.tiff' .*: its shades have no fixed white"):
        picture_url(str(file))


def test_formats_that_only_pillow_knows_are_refused(tmp_path: Path) -> None:
    """To read an EPS, Pillow runs Ghostscript on it."""
    for kind in ("eps", "ppm", "tga", "ico"):
        file = tmp_path / f"a.{kind}"
        Image.new("RGB", (32, 32)).save(file)
        for read in (read_image, picture_size, picture_url, lambda name: check_pictures([name])):
            with pytest.raises(FieldError, match="is not a readable picture: save it as JPEG, PNG"):
                read(str(file))


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_parts_are_white_whatever_they_hide(tmp_path: Path, mode: str) -> None:
    """A text that only the judge would read is hidden from it, and black ink stays legible."""
    picture = Image.new("LA", (8, 8), (0, 0))
    picture.putpixel((1, 1), (90, 0))
    picture.putpixel((2, 2), (0, 255))
    converted = picture.convert("RGBA")
    if mode == "P":
        converted = converted.quantize(8)
    (picture if mode == "LA" else converted).save(tmp_path / "drawn.png")
    seen = np.asarray(read_image(str(tmp_path / "drawn.png")))
    assert seen[2, 2].tolist() == [0, 0, 0]
    seen = seen.copy()
    seen[2, 2] = 255
    assert (seen == 255).all()


@pytest.mark.parametrize("part", [b"iloc", b"mdat"])
def test_a_broken_avif_is_named(tmp_path: Path, part: bytes) -> None:
    file = tmp_path / "a.avif"
    content = Path(save_picture(file, 70, 50)).read_bytes()
    start = content.index(part)
    rest = content[start + 4 :] if part == b"iloc" else bytes(len(content) - start - 4)
    file.write_bytes(content[:start] + (b"xxxx" if part == b"iloc" else part) + rest)
    with pytest.raises(FieldError, match="a.avif' is not .*: it is broken or cut off$"):
        check_pictures([str(file)])
    if part == b"iloc":  # the header is broken, not the pixels
        for read in (picture_size, picture_url):
            with pytest.raises(FieldError, match="a.avif' is not .*: it is broken or cut off$"):
                read(str(file))


def test_exif_in_very_many_parts_is_refused_at_once(tmp_path: Path) -> None:
    """Refuse the picture unread: to read 300,000 parts takes more than a minute."""
    file, part = tmp_path / "a.jpg", b"\xff\xe1\x00\x09Exif\0\0x"
    whole = Path(save_picture(file, 70, 50)).read_bytes()
    file.write_bytes(whole[:2] + part * 100 + whole[2:])
    check_pictures([str(file)])
    content = whole[:2] + part * 300_000 + whole[2:]
    file.write_bytes(content)
    started = time.process_time()
    for read in (read_image, picture_size, picture_url, lambda source: check_pictures([source])):
        with pytest.raises(FieldError, match="a.jpg': the EXIF of the picture has more than 100"):
            read(str(file))
    with pytest.raises(FieldError, match="data URL: the EXIF of the picture has more than 100"):
        read_image(_data_url(content))
    with pytest.raises(CustosError, match="the EXIF of the picture has more than 100 parts"):
        save_image(content, tmp_path)
    assert time.process_time() - started < 5
