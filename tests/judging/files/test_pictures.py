"""Pictures whole and broken, as files and as data URLs."""

import base64
import io
import os
import re
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from clients.messages import encode_message, picture_url
from data_prep.tables.cells import save_image
from judging.errors import CustosError, FieldError
from judging.files.pictures import check_pictures, picture_size, read_image
from judging.files.rgb import orientation
from judging.fingerprint import picture_sha256
from judging.judge import Judge
from judging.judge.card import read_card
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import Message
from tests.conftest import HubFolders
from tests.judging.made_up import ask, save_run
from tests.tiny import save_picture

FORMATS = ("jpg", "png", "webp", "gif", "bmp", "avif", "tiff")


@pytest.fixture(scope="module", params=FORMATS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of each format."""
    return Path(save_picture(tmp_path_factory.mktemp("whole") / f"a.{request.param}", 70, 50))


def _data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


READERS = (read_image, picture_size, picture_url, lambda source: check_pictures([source]))
"""All that read a picture."""


def refused(source: Path | str, match: str, readers: Sequence[Any] = READERS) -> None:
    for read in readers:
        with pytest.raises(FieldError, match=match):
            read(str(source))


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
    with suppress(FieldError):
        read_image(source)
        return  # some decoders do without the last bytes
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
    for source in (file, _data_url(content), tmp_path, tmp_path / "none.png"):
        refused(source, "is not a readable picture", (READERS[0], READERS[1], READERS[3]))


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
    refused(path, re.escape(f"'{path}' is not a readable picture: {reason}"), READERS[3:])


def test_a_huge_picture_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_picture(tmp_path / "a.png", 20, 30)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 250)
    refused(path, r"a\.png' .*: it has more than 500 pixels; scale", (picture_size,))


def test_addresses_are_not_fetched_and_data_urls_are_base64() -> None:
    refused("data:text/plain,secret", "^field 'images': a data URL must be base64$", READERS[:2])
    refused("https://a.org/a.png", r"'https://a\.org/a\.png' .*: addresses are not", READERS[3:])


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


def test_devices_pipes_and_formats_that_only_pillow_knows_are_refused_at_once(
    tmp_path: Path,
) -> None:
    """To read an EPS, Pillow runs Ghostscript on it."""
    os.mkfifo(tmp_path / "pipe.png")
    for source in ("/dev/zero", tmp_path / "pipe.png", tmp_path):
        refused(source, "is not a readable picture")
        assert picture_sha256(str(source)) == "unreadable"
    for kind in ("eps", "ppm"):
        Image.new("RGB", (32, 32)).save(tmp_path / f"a.{kind}")
        refused(tmp_path / f"a.{kind}", "is not a readable picture: save it as JPEG, PNG")


@pytest.mark.parametrize(("kind", "tags"), [("png", {}), ("tiff", {}), ("tiff", {262: 0})])
def test_grey_of_16_bits_keeps_its_shades(tmp_path: Path, kind: str, tags: dict[int, int]) -> None:
    """Also where the file says that white is zero."""
    shades = np.linspace(0, 2**16 - 1, 256).astype(np.uint16).reshape(16, 16)
    file = tmp_path / f"grey.{kind}"
    stored = Image.fromarray(2**16 - 1 - shades if tags else shades)
    options: dict[str, Any] = {"tiffinfo": tags} if tags else {}
    stored.save(file, **options)
    seen = np.asarray(read_image(str(file)))
    assert all((seen[..., channel].flatten() == range(256)).all() for channel in range(3))


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
    readers = (READERS[0], READERS[3])
    for source in (file, _data_url(file.read_bytes())):
        refused(source, "its shades have no fixed white; save it with 8", readers)
    refused(file, "a.tiff' .*: its shades have no fixed white", (picture_url,))


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


def test_exif_in_very_many_parts_is_refused_at_once(tmp_path: Path) -> None:
    """Refuse the picture unread: to read 300,000 parts takes more than a minute."""
    file, part = tmp_path / "a.jpg", b"\xff\xe1\x00\x09Exif\0\0x"
    whole = Path(save_picture(file, 70, 50)).read_bytes()
    file.write_bytes(whole[:2] + part * 100 + whole[2:])
    check_pictures([str(file)])
    content = whole[:2] + part * 300_000 + whole[2:]
    file.write_bytes(content)
    started = time.process_time()
    refused(file, "a.jpg': the EXIF of the picture has more than 100")
    refused(_data_url(content), "data URL: the EXIF of the picture has more than", (read_image,))
    with pytest.raises(CustosError, match="the EXIF of the picture has more than 100 parts"):
        save_image(content, tmp_path)
    assert time.process_time() - started < 5


ORIENTATION_TAG = 0x0112
SIZE = 96, 64
TURNED_FORMATS = ("jpeg", "png", "webp", "tiff", "avif", "mpo")


def drawing() -> Image.Image:
    """A picture of which no turn is another."""
    picture = Image.new("RGB", SIZE, "white")
    picture.paste((200, 0, 0), (0, 0, 48, 16))
    picture.paste((0, 0, 200), (64, 32, 96, 64))
    return picture


def saved(kind: str, exif: bytes) -> bytes:
    file = io.BytesIO()
    drawing().save(file, kind, exif=exif)
    return file.getvalue()


def turned(number: int, kind: str = "png") -> bytes:
    """A picture whose EXIF states an orientation."""
    exif = Image.Exif()
    exif[ORIENTATION_TAG] = number
    return saved(kind, exif.tobytes())


def pixels(picture: Image.Image) -> list[list[list[int]]]:
    return np.asarray(picture).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", TURNED_FORMATS)
@pytest.mark.parametrize("number", range(1, 9))
def test_a_judge_sees_pictures_upright(tmp_path: Path, number: int, kind: str) -> None:
    file = tmp_path / f"photograph.{kind}"
    file.write_bytes(turned(number, kind))
    with Image.open(file) as stored:
        upright = ImageOps.exif_transpose(stored).convert("RGB")
    check_pictures([str(file)])
    for source in (str(file), _data_url(file.read_bytes())):
        assert pixels(read_image(source)) == pixels(upright)
        assert picture_size(source) == upright.size == (SIZE if number < 5 else SIZE[::-1])


def test_prompts_are_measured_upright(tiny: Backbone) -> None:
    """A narrow picture and its turned twin have grids that differ, and the size that was said."""
    encoder, task = Encoder(tiny, shows_all_pictures=True), get_task("hieval-qs")
    grids = []
    for number in (1, 6):
        request = ask(images=(_data_url(turned(number)),))
        [prompt], [size] = encoder.encode([(task, request)]), encoder.measure([(task, request)])
        assert size.suffix_tokens == len(prompt.suffix_ids)
        grids.append(prompt.vision["image_grid_thw"][0].tolist())
    lying, upright = grids
    assert lying[1] < lying[2]
    assert upright == [lying[0], lying[2], lying[1]]


@pytest.mark.parametrize("kind", ["jpeg", "png", "mpo"])
def test_other_servers_get_upright_pixels(tmp_path: Path, kind: str) -> None:
    """As a JPEG also where a phone made a file of several pictures: none knows ``image/mpo``."""
    file = tmp_path / "photograph.jpg"
    file.write_bytes(turned(6, kind))
    for source in (str(file), _data_url(file.read_bytes())):
        assert read_image(source).getexif() == {}
        [part, _] = encode_message(Message(role="user", text="a", images=(source,)))["content"]
        header, _, content = part["image_url"]["url"].partition(",")
        assert header == "data:image/jpeg;base64"
        with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
            assert picture.getexif() == {}
            assert picture.size == SIZE[::-1]
            difference = np.asarray(picture, np.int16) - np.asarray(read_image(source), np.int16)
        assert np.abs(difference).mean() < 2


def entry(tag: int, kind: int, count: int, value: int) -> bytes:
    return struct.pack("<HHII", tag, kind, count, value)


def directory(*entries: bytes) -> bytes:
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries)


@given(st.binary(max_size=200), st.sampled_from([b"", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08"]))
def test_any_bytes_are_exif_of_some_orientation(content: bytes, start: bytes) -> None:
    picture = drawing()
    picture.info["exif"] = start + content
    assert orientation(picture) in range(1, 9)


def test_exif_behind_the_pixels_does_not_count() -> None:
    """A header says the same size as the decoded picture, whatever stands at the end."""
    content = saved("png", b"")
    data = directory(entry(ORIENTATION_TAG, 3, 1, 6))
    chunk = struct.pack(">I", len(data)) + b"eXIf" + data
    chunk += struct.pack(">I", zlib.crc32(chunk[4:]))
    end = content.rindex(b"IEND") - 4
    source = _data_url(content[:end] + chunk + content[end:])
    assert picture_size(source) == read_image(source).size == SIZE


MOST = 200_000

Load = Callable[..., Judge]


@pytest.fixture(scope="module")
def limited(hub_folders: HubFolders) -> Backbone:
    """A backbone of published limits, as a run with ``run.max_pixels`` has it."""
    folder = hub_folders("Qwen3-VL-4B-Instruct")
    return load_backbone(folder, dtype="float32", device="cpu").with_pixels(max_pixels=MOST)


@pytest.fixture(scope="module")
def load(limited: Backbone, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Loads a judge whose card has these fields beside those that training writes."""
    folder = save_run(tmp_path_factory.mktemp("runs") / "mine", limited, ("plain/all",))
    card = read_card(folder)

    def load_with(**fields: Any) -> Judge:
        changed = card.model_copy(update=fields).model_dump_json(exclude_none=True)
        (folder / "judge.json").write_text(changed, encoding="utf-8")
        return Judge.load(str(folder), dtype="float32", device="cpu")

    return load_with


def test_a_judge_sees_pictures_as_in_training(load: Load, limited: Backbone) -> None:
    judge = load()
    assert judge.folder and read_card(judge.folder).max_pixels == MOST
    assert judge.backbone.pixels == limited.pixels == (65536, MOST)
    described = judge.describe()
    assert (described["min_pixels"], described["max_pixels"]) == (65536, MOST)
    untrained = Judge.load(limited.name, device="cpu", pixels=judge.backbone.pixels)
    assert untrained.backbone.pixels == judge.backbone.pixels
    zero_shot = Judge.load(limited.name, device="cpu")
    assert zero_shot.backbone.pixels == (65536, 1024 * 1024)
    assert zero_shot.describe()["max_pixels"] == 1024 * 1024


def test_a_card_without_limits_means_the_checkpoints_own(load: Load) -> None:
    judge = load(min_pixels=None, max_pixels=None)
    assert judge.backbone.pixels == (65536, 16777216)
    assert "max_pixels" not in judge.describe(), "the identity is as it was"
    stated = load(min_pixels=65536, max_pixels=16777216)
    assert stated.identity == judge.identity, "the backbone's version covers its own limits"


def test_verdicts_say_what_was_scaled_down(load: Load, tmp_path: Path) -> None:
    large = save_picture(tmp_path / "large.png", 600, 400)
    small = save_picture(tmp_path / "small.png", 300, 200)
    verdicts = load(shows_all_pictures=True).grade(
        [ask(images=(large,)), ask(images=(small, large)), ask(images=(small,)), ask()]
    )
    assert [verdict.message for verdict in verdicts] == [
        "the picture was scaled down to 0.20 MP",
        "1 of 2 pictures were scaled down to 0.20 MP",
        None,
        None,
    ]
