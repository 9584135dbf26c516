"""Pictures in the cells of a table: names, data URLs and bytes."""

from __future__ import annotations

import base64
import hashlib
import struct
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from data_prep.tables.cells import content_name, save_image
from data_prep.tables.reader import BadRow, parse_table
from judging.errors import CustosError, FieldError
from judging.files.pictures import picture_size
from judging.types import JudgeRequest
from tests.data_prep.tables.made_up import HEAD, ROW, parquet, requests, save


def encoded(kind: str, picture: Image.Image | None = None, **options: object) -> bytes:
    file = BytesIO()
    (picture or Image.new("RGB", (4, 3))).save(file, kind, **options)
    return file.getvalue()


def test_pictures_are_relative_to_the_table(tmp_path: Path) -> None:
    url = "data:image/png;base64,AAAA"
    text = f'{HEAD},images\n?,x,y,a.png;b.png\n?,x,y,"{url}"\n'
    first, second = requests(save(tmp_path / "a.csv", text))
    assert first.images == (str(tmp_path / "a.png"), str(tmp_path / "b.png"))
    assert second.images == (url,)


def test_bytes_of_pictures_are_data_urls_that_services_know(tmp_path: Path) -> None:
    """Take a JPEG that names further pictures, as phones make them, for a JPEG."""
    content = encoded("MPO", save_all=True, append_images=[Image.new("RGB", (4, 3))])
    [request] = requests(parquet(tmp_path / "a.parquet", {**ROW, "images": [{"bytes": content}]}))
    assert request.images[0].startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_bytes_alone_and_base64_are_pictures(tmp_path: Path, kind: str, in_folder: bool) -> None:
    """Read what pandas writes, beside the records of the hub, and the tables of benchmarks."""
    folder = tmp_path / "pictures" if in_folder else None
    path = parquet(tmp_path / "a.parquet", {**ROW, "images": encoded(kind)})
    [request] = requests(path, folder)
    assert [picture_size(name) for name in request.images] == [(4, 3)]
    noise = Image.effect_noise((500, 400), 90)
    text = base64.b64encode(encoded(kind, noise)).decode()
    assert len(text) > 50_000 or kind == "WEBP"
    head = HEAD.replace(",", "\t")
    [request] = requests(save(tmp_path / "a.tsv", f"{head}\timages\n?\tx\ty\t{text}\n"), folder)
    assert [picture_size(name) for name in request.images] == [(500, 400)]


@pytest.mark.parametrize("kind", ["AVIF", "BMP"])
def test_bytes_that_are_no_picture_are_one_bad_row(tmp_path: Path, kind: str) -> None:
    """Refuse a broken header, and one that claims 60,000 x 60,000 pixels."""
    if kind == "AVIF":
        content = encoded(kind).replace(b"iloc", b"xxxx")
    else:
        size = struct.pack("<ii", 60_000, 60_000)
        content = encoded(kind).replace(struct.pack("<ii", 4, 3), size)
    path = parquet(tmp_path / "a.parquet", {**ROW, "images": [{"bytes": content}]})
    [(_, bad)] = parse_table(path, JudgeRequest)
    assert isinstance(bad, BadRow)
    assert isinstance(bad.error, FieldError)
    assert bad.error.field == "images"
    with pytest.raises(CustosError):
        save_image(content, tmp_path)


def test_images_are_saved_once_under_a_name_made_from_their_content(tmp_path: Path) -> None:
    content = encoded("JPEG")
    path = save_image(content, tmp_path / "images")
    assert path.name == f"{hashlib.sha256(content).hexdigest()[:16]}.jpeg"
    assert path.name == content_name(content, "jpeg")
    assert path.read_bytes() == content
    before = path.stat()
    assert save_image(content, tmp_path / "images") == path
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert list(path.parent.iterdir()) == [path]
