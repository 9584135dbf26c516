"""Pictures of requests: files and data URLs, measured by their headers or decoded."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from judging.base64_pictures import BASE64_STARTS, LONGEST_NAME
from judging.errors import FieldError
from judging.files.opening import LFS_POINTER, is_lfs_pointer

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
"""Formats that are read. Pillow knows more, some by running other programs (EPS)."""
MOST_PIXELS = 1024 * 1024
"""Most pixels that a picture keeps unless a recipe says otherwise."""
SCALED_PNG = "data:image/png;scaled=1;"
"""How the data URL of a picture begins that has been scaled down already, as the service does."""
MOST_EXIF_PARTS = 100
"""Most parts of a JPEG's EXIF. For each, Pillow copies all earlier ones: 80,000 take 6 s."""
EXIF_FAULT = f"the EXIF of the picture has more than {MOST_EXIF_PARTS} parts"
_EXIF_START = b"Exif\0\0"
_JPEG_START = b"\xff\xd8"
_READ_AT_ONCE = 1 << 20
_TAIL = 4096
_JPEG_END = b"\xff\xd9"


class PixelLimits(NamedTuple):
    """Areas between which a picture is scaled before the model sees it."""

    min_pixels: int
    max_pixels: int

    def changed(self, min_pixels: int | None = None, max_pixels: int | None = None) -> PixelLimits:
        """Return these limits of a checkpoint, changed as a recipe or a card says.

        The upper limit is by default this one, at most ``MOST_PIXELS``. A lower limit above the
        upper one raises ``FieldError``.
        """
        most = max_pixels or min(self.max_pixels, MOST_PIXELS)
        least = min_pixels or min(self.min_pixels, most)
        if least > most:
            raise FieldError("min_pixels", f"{least:,} is more than max_pixels, which is {most:,}")
        return PixelLimits(least, most)


class PictureSize(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int

    @property
    def pixels(self) -> int:
        """Count the pixels."""
        return self.width * self.height

    def at_most(self, pixels: int) -> PictureSize | None:
        """Return the size of this shape with at most so many pixels; ``None`` if it has no more."""
        if self.pixels <= pixels:
            return None
        scale = math.sqrt(pixels / self.pixels)
        width = min(max(1, int(scale * self.width)), pixels)
        height = min(max(1, int(scale * self.height)), pixels)
        return PictureSize(min(width, pixels // height), min(height, pixels // width))


def megapixels(pixels: int) -> str:
    """Return a number of pixels in words: ``1.0 MP``, or ``0.04 MP`` if it is small."""
    millions = pixels / 1e6
    return f"{millions:.1f} MP" if millions >= 0.95 else f"{millions:.2f} MP"


def read_image(source: str) -> Image:
    """Open a file path or a base64 data URL as an RGB picture (:func:`judging.files.rgb.as_rgb`).

    What cannot be read raises ``FieldError``, which never shows the content.
    """
    from judging.files.rgb import as_rgb

    with _opened_picture(source) as picture:
        return as_rgb(picture)


def picture_size(source: str) -> PictureSize:
    """Return the size of a picture, upright, as its header says; ``FieldError`` if it has none."""
    from judging.files.rgb import upright_size

    with _opened_picture(source) as picture:
        return PictureSize(*upright_size(picture))


def is_turned(source: str) -> bool:
    """Tell whether the pixels of a picture are stored otherwise than people see them."""
    from judging.files.rgb import orientation

    with _opened_picture(source) as picture:
        return orientation(picture) != 1


def mime_type(picture: Image) -> str:
    """Return the MIME type of an opened picture, as other programs know it."""
    from PIL import Image

    name = picture.format or "PNG"
    # MPO: a JPEG that names further pictures, as some phones make them.
    return Image.MIME.get("JPEG" if name == "MPO" else name, f"image/{name.lower()}")


def plain_url(source: str) -> str:
    """Return the URL of a picture for other programs: without our mark that it was scaled down."""
    return f"data:image/png;{source.removeprefix(SCALED_PNG)}" if was_scaled(source) else source


def was_scaled(source: str) -> bool:
    """Tell whether a data URL holds a picture that has been scaled down to a judge's limit."""
    return source.startswith(SCALED_PNG)


def check_pictures(sources: Iterable[str]) -> None:
    """Raise ``FieldError`` for a picture that is missing, broken or cut off.

    Only those that do not look whole are decoded.
    """
    for source in sources:
        if not _looks_whole(source):
            read_image(source)


def has_too_many_exif_parts(file: IO[bytes]) -> bool:
    """Tell whether a JPEG has more EXIF parts than are read; the file is left at its start."""
    num_parts = 0
    if file.read(len(_JPEG_START)) == _JPEG_START:
        while content := file.read(_READ_AT_ONCE):
            num_parts += content.count(_EXIF_START)
    file.seek(0)
    return num_parts > MOST_EXIF_PARTS


def _looks_whole(source: str) -> bool:
    """Tell whether header and end of a picture are in place, and every checksum of a PNG."""
    from PIL import Image

    with picture_errors(source), opened_source(source) as file:
        with Image.open(file, formats=FORMATS) as picture:
            format_name = picture.format
            if format_name == "PNG":
                try:
                    picture.verify()
                except (OSError, ValueError, SyntaxError, EOFError):
                    return False
                return True
        if format_name != "JPEG":
            return False
        # Inside the data of a picture this pair of bytes cannot occur.
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _TAIL))
        return _JPEG_END in file.read()


@contextmanager
def _opened_picture(source: str) -> Iterator[Image]:
    """Open a file path or a data URL as a picture, of which only the header is read."""
    from PIL import Image

    with picture_errors(source), opened_source(source) as file:
        with Image.open(file, formats=FORMATS) as picture:
            yield picture


@contextmanager
def opened_source(source: str) -> Iterator[IO[bytes]]:
    """Open a file path or a base64 data URL, for Pillow to read within :func:`picture_errors`."""
    opened: IO[bytes]
    if source.startswith("data:"):
        header, _, payload = source.partition(",")
        if not header.endswith(";base64"):
            raise FieldError("images", "a data URL must be base64")
        opened = io.BytesIO(base64.b64decode(payload, validate=True))
    else:
        path = Path(source)
        if not path.is_file():  # a device or a pipe may have no end
            raise _Unusable("it is no regular file" if path.exists() else "there is no such file")
        if not path.stat().st_size:
            raise _Unusable("the file is empty")
        if is_lfs_pointer(path):
            raise _Unusable(LFS_POINTER)
        opened = path.open("rb")
    with opened as file:
        if has_too_many_exif_parts(file):
            raise FieldError("images", f"{_name(source)}: {EXIF_FAULT}")
        yield file


class _Unusable(OSError):
    """Refusal of a picture's file, with the reason as its text."""


def _is_base64(source: str) -> bool:
    """Tell whether a text is the content of a picture, where the name of a file should be."""
    return len(source) > LONGEST_NAME or any(start in source for start in BASE64_STARTS)


def _name(source: str) -> str:
    if source.startswith("data:"):
        return "data URL"
    return "base64" if _is_base64(source) else f"'{source}'"


def _reason(source: str, error: Exception) -> str:
    """Say why a picture cannot be read, as the end of an error; empty for a data URL."""
    from PIL import Image, UnidentifiedImageError

    from judging.files.rgb import UnclearShades

    if isinstance(error, UnclearShades):
        return ": its shades have no fixed white; save it with 8 or 16 bits, as PNG"
    if source.startswith("data:"):
        return ""
    if _is_base64(source):
        return ": put 'data:image/jpeg;base64,' (or png, webp) in front"
    if "://" in source:
        return ": addresses are not fetched; download it and name the file"
    if isinstance(error, _Unusable):
        return f": {error}"
    if isinstance(error, OSError) and error.errno:  # the system's, as without permission to read
        return f": {error.strerror}"
    if isinstance(error, UnidentifiedImageError):
        return ": save it as JPEG, PNG or WebP"
    if isinstance(error, Image.DecompressionBombError):
        return f": it has more than {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels; scale it down"
    return ": it is broken or cut off"


@contextmanager
def picture_errors(source: str) -> Iterator[None]:
    """Raise whatever a broken picture raises as a ``FieldError`` that names the picture."""
    from PIL import Image

    try:
        yield
    # A PNG with a broken chunk raises SyntaxError, one that ends too soon may raise EOFError, and
    # a broken AVIF RuntimeError.
    except (
        *(OSError, ValueError, SyntaxError, EOFError, RuntimeError),
        Image.DecompressionBombError,
    ) as error:
        message = f"{_name(source)} is not a readable picture{_reason(source, error)}"
        raise FieldError("images", message) from None
