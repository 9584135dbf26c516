"""A program that decodes pictures: the service starts it, and ends it when it takes too long.

It writes :data:`READY` once it can begin. It reads pictures from its standard input, one after the
other: :data:`QUESTION`, then a data URL. For each it writes :data:`ANSWER` and a data URL of a PNG,
which is empty if there is no readable picture. It imports no package of custos, so that it starts
within a tenth of a second; of one it runs a single file.
"""

from __future__ import annotations

import base64
import io
import os
import resource
import runpy
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from PIL import Image

_RGB = Path(__file__).parents[2] / "judging" / "files" / "rgb.py"
as_rgb: Callable[[Image.Image], Image.Image] = runpy.run_path(str(_RGB))["as_rgb"]

READY = b"ready"
QUESTION = struct.Struct(">III")
"""Number of bytes of the data URL; width and height to scale the picture to, or 0 and 0."""
ANSWER = struct.Struct(">I")
"""Number of bytes of the data URL."""
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
"""Formats that the service takes. Others that :mod:`judging.files.pictures` reads have decoders
that are larger, and more often at fault with what strangers send: TIFF and AVIF."""
FORMAT_NAMES = "JPEG, PNG, WebP, GIF or BMP"
"""The same, for people."""
MEMORY_BYTES = 1 << 30
"""Address space of the program. The largest picture that the service takes needs a third of it."""
PNG = b"data:image/png;base64,"
SCALED_PNG = b"data:image/png;scaled=1;base64,"
"""Says that the picture was larger (:func:`judging.files.pictures.was_scaled`)."""


def decode(url: bytes, size: tuple[int, int] | None) -> bytes:
    """Decode a data URL into a PNG without metadata; of an animation, the first picture.

    ``size`` is the width and height to scale it to, as Qwen's processors scale; ``None`` leaves it
    as large as it is.
    """
    content = base64.b64decode(url.partition(b",")[2], validate=True)
    with Image.open(io.BytesIO(content), formats=FORMATS) as file:
        picture = as_rgb(file)
    if size:
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    png = io.BytesIO()
    picture.save(png, "PNG", compress_level=1)
    return (SCALED_PNG if size else PNG) + base64.b64encode(png.getvalue())


def main() -> None:
    """Answer until the standard input ends."""
    # A terminal and systemd signal all processes of a service, which still answers what it has.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(5)  # what goes to the model comes first
    with suppress(OSError, ValueError):  # not every system has such a limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    while question := sys.stdin.buffer.read(QUESTION.size):
        num_bytes, width, height = QUESTION.unpack(question)
        url = sys.stdin.buffer.read(num_bytes)
        try:
            answer = decode(url, (width, height) if width else None)
        except Exception:  # noqa: BLE001 -- whatever a decoder raises, the next picture may be fine
            answer = b""
        sys.stdout.buffer.write(ANSWER.pack(len(answer)) + answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
