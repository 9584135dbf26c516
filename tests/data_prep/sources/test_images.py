import hashlib
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data_prep.tables.cells import content_name, image_names, save_image
from judging.errors import CustosError


def jpeg() -> bytes:
    content = BytesIO()
    Image.new("RGB", (3, 2), "red").save(content, "jpeg")
    return content.getvalue()


def test_images_are_saved_once_under_a_name_made_from_their_content(tmp_path: Path) -> None:
    path = save_image(jpeg(), tmp_path / "images")
    assert path.name == f"{hashlib.sha256(jpeg()).hexdigest()[:16]}.jpeg"
    assert path.name == content_name(jpeg(), "jpeg")
    assert path.read_bytes() == jpeg()
    before = path.stat()
    assert save_image(jpeg(), tmp_path / "images") == path
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert list(path.parent.iterdir()) == [path]


def bomb() -> bytes:
    """A bitmap of 3.6 gigapixels that ends after its header."""
    size = (60_000, 60_000)
    header = struct.pack("<IiiHHIIiiII", 40, *size, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header


@pytest.mark.parametrize("value", [None, "", []])
def test_no_image(value: Any, tmp_path: Path) -> None:
    assert image_names(value, tmp_path, None) == ()


def test_paths_records_and_lists(tmp_path: Path) -> None:
    value = ["a.png", {"path": "b.png", "bytes": None}, "https://example.org/c.png"]
    assert image_names(value, tmp_path, None) == (
        str(tmp_path.resolve() / "a.png"),
        str(tmp_path.resolve() / "b.png"),
        "https://example.org/c.png",
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "expected a path, image bytes or a list of these, got 7"),
        ({"bytes": b"abc"}, "3 bytes that are not an image"),
        ({"bytes": bomb()}, "54 bytes that are not an image"),
    ],
)
def test_values_that_are_no_image(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=message):
        image_names(value, tmp_path, tmp_path)


def test_bytes_need_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="name a folder to save them in"):
        image_names({"bytes": jpeg()}, tmp_path, None)
