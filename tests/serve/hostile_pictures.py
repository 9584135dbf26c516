"""Pictures that mean harm, as hypothesis draws them."""

import base64
import io
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from PIL import Image

Draw = st.DrawFn


def encoded(kind: str, size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    draws = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(draws).save(file, kind, **options)
    return file.getvalue()


def black(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (width, height)).save(file, "png")
    return file.getvalue()


PICTURES = (
    *(encoded("png"), encoded("gif"), encoded("bmp"), encoded("webp")),
    *(encoded("jpeg"), encoded("jpeg", progressive=True), encoded("webp", lossless=True)),
    *(encoded("png", (1, 900)), black(4_000, 4_000), black(1, 60_000)),
)
EDITS = st.lists(
    st.tuples(st.integers(0, 2**16), st.integers(0, 3), st.binary(max_size=4)), max_size=5
)
HEADERS = ("data:image/png;base64,",) * 6 + (
    *("data:image/jpg;base64,", "DATA:IMAGE/PNG;BASE64,", "data:;base64,", "", "data:,"),
    *("data:image/png;charset=utf-8;base64,", "data:image/png;scaled=1;base64,", "file:///"),
)


@st.composite
def edited(draw: Draw, content: bytes, repeats: Sequence[int] = (0, 0, 0, 1, 30)) -> bytes:
    """Bytes changed, put in, taken away, repeated or cut off."""
    changed = bytearray(content)
    for place, length, new in draw(EDITS):
        changed[place % (len(changed) + 1) : place % (len(changed) + 1) + length] = new
    start = draw(st.integers(0, len(changed)))
    changed += changed[start : start + 4_000] * draw(st.sampled_from(repeats))
    return bytes(changed[: draw(st.sampled_from((len(changed),) * 3 + (start,)))])


@st.composite
def pictures(draw: Draw) -> str:
    """A picture as it should be, one that is damaged, or one of another size by its header."""
    content = draw(st.sampled_from(PICTURES))
    if content[1:4] == b"PNG" and draw(st.booleans()):
        sizes = struct.pack(">II", *(draw(st.integers(0, 2**32 - 1)) for _ in range(2)))
        head = content[12:16] + sizes + content[24:29]
        content = content[:12] + head + struct.pack(">I", zlib.crc32(head)) + content[33:]
    content = draw(edited(content)) if draw(st.booleans()) else content
    head = draw(st.sampled_from(HEADERS))
    return json.dumps(
        head + base64.b64encode(content).decode() + draw(st.sampled_from(("",) * 9 + ("=", "\n")))
    )
