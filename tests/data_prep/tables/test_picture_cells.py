"""Pictures in the cells of a table: names, data URLs and bytes."""

from __future__ import annotations

import base64
import json
import struct
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from data_prep.tables.cells import save_image
from data_prep.tables.reader import BadRow, parse_table, read_table
from judging.errors import CustosError, FieldError
from judging.files.pictures import check_pictures, picture_size
from judging.types import JudgeRequest
from tests.data_prep.tables.made_up import save


def test_pictures_are_relative_to_the_table(tmp_path: Path) -> None:
    url = "data:image/png;base64,AAAA"
    text = f'question,references,response,images\n?,x,y,a.png;b.png\n?,x,y,"{url}"\n'
    path = save(tmp_path / "a.csv", text)
    (_, first), (_, second) = read_table(path, JudgeRequest)
    assert first.images == (str(tmp_path / "a.png"), str(tmp_path / "b.png"))
    assert second.images == (url,)


def test_bytes_of_pictures_are_data_urls_that_services_know(tmp_path: Path) -> None:
    """Take a JPEG that names further pictures, as phones make them, for a JPEG."""
    file, drawing = BytesIO(), Image.new("RGB", (4, 3))
    drawing.save(file, "MPO", save_all=True, append_images=[drawing])
    content = {"bytes": file.getvalue()}
    row = {"question": "?", "references": ["x"], "response": "y", "images": [content]}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    [(_, request)] = read_table(path, JudgeRequest)
    assert request.images[0].startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize("in_folder", [False, True])
def test_a_column_of_bytes_alone_holds_pictures(tmp_path: Path, in_folder: bool) -> None:
    """Read what pandas writes, beside the records of the hub."""
    file = BytesIO()
    Image.new("RGB", (4, 3)).save(file, "PNG")
    row = {"question": "?", "references": ["x"], "response": "y", "images": file.getvalue()}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    folder = tmp_path / "pictures" if in_folder else None
    [(_, request)] = read_table(path, JudgeRequest, image_folder=folder)
    assert [picture_size(name) for name in request.images] == [(4, 3)]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("in_folder", [False, True])
def test_base64_is_a_picture_as_in_the_tables_of_benchmarks(
    tmp_path: Path, kind: str, in_folder: bool
) -> None:
    file = BytesIO()
    Image.effect_noise((500, 400), 90).save(file, kind)
    text = base64.b64encode(file.getvalue()).decode()
    assert len(text) > 50_000 or kind == "WEBP"
    path = save(tmp_path / "a.tsv", f"question\treferences\tresponse\timages\n?\tx\ty\t{text}\n")
    folder = tmp_path / "pictures" if in_folder else None
    [(_, request)] = read_table(path, JudgeRequest, image_folder=folder)
    assert [picture_size(name) for name in request.images] == [(500, 400)]


def test_base64_that_is_cut_off_makes_a_bad_row(tmp_path: Path) -> None:
    text = base64.b64encode(b"\xff\xd8\xff\xe0" + bytes(97)).decode()[:-3]
    path = save(tmp_path / "a.tsv", f"question\treferences\tresponse\timages\n?\tx\ty\t{text}\n")
    with pytest.raises(CustosError, match=r"a.tsv row 1 .*images.*base64.* is cut off"):
        list(read_table(path, JudgeRequest))


def test_a_name_that_no_file_can_have_is_one_bad_picture(tmp_path: Path) -> None:
    (tmp_path / "loop.png").symlink_to("loop.png")
    row = {"question": "?", "references": ["x"], "response": "y"}
    rows = [json.dumps({**row, "images": [name]}) for name in ("a\0.png", "loop.png")]
    path = save(tmp_path / "a.jsonl", "\n".join(rows))
    for _, request in read_table(path, JudgeRequest):
        with pytest.raises(FieldError, match="there is no such file"):
            check_pictures(request.images)


@pytest.mark.parametrize("kind", ["AVIF", "BMP"])
def test_bytes_that_are_no_picture_are_one_bad_row(tmp_path: Path, kind: str) -> None:
    """Refuse a broken header, and one that claims 60,000 x 60,000 pixels."""
    file = BytesIO()
    Image.new("RGB", (4, 3)).save(file, kind)
    if kind == "AVIF":
        content = file.getvalue().replace(b"iloc", b"xxxx")
    else:
        size = struct.pack("<ii", 60_000, 60_000)
        content = file.getvalue().replace(struct.pack("<ii", 4, 3), size)
    row = {"question": "?", "references": ["x"], "response": "y", "images": [{"bytes": content}]}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    [(_, bad)] = parse_table(path, JudgeRequest)
    assert isinstance(bad, BadRow)
    assert "bytes that are not an image" in str(bad.error)
    with pytest.raises(CustosError, match="bytes that are not an image"):
        save_image(content, tmp_path)
