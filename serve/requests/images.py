"""Pictures in a request body: data URLs, measured before anything is decoded."""

from __future__ import annotations

import base64
import io
import re

from judging.files.pictures import EXIF_FAULT, has_too_many_exif_parts
from serve.errors import ApiError
from serve.limits import Limits
from serve.pictures.decode import FORMAT_NAMES, FORMATS

DATA_URL = re.compile(r"data:(?:image/[\w.+-]+|\w+/octet-stream);base64,", re.ASCII)
"""How a picture in the one form of requests begins. Its kind is seen in its content: many programs
name it by the ending of a file, as ``image/jpg``."""
UNREADABLE = f"not a readable {FORMAT_NAMES} picture; save others, such as TIFF or AVIF, as PNG"
JPEG_SCAN = b"\xff\xda"
MOST_READS = 20_000
"""Most pieces in which a header is read: a few hundred where nobody means harm. Each byte of a JPEG
can be one, and three million take 2.5 s."""


class _Header(io.BytesIO):
    """Content of a picture, of which so many pieces may be read."""

    num_reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes.

        Raises:
            OSError: After ``MOST_READS``.
        """
        self.num_reads += 1
        if self.num_reads > MOST_READS:
            raise OSError("the header has too many pieces")
        return super().read(size)


def num_pixels(source: str, field: str, limits: Limits) -> int:
    """Return the number of pixels of a picture, as its header says.

    Args:
        source: What the client sent. It is never opened as a file and never fetched.
        field: Its path in the body, to name in an error.
        limits: Limit on the pixels of one picture.

    Raises:
        ApiError: 422 if it is not a data URL, cannot be read, or has too many pixels. The message
            shows nothing of the content.
    """
    from PIL import Image

    prefix = DATA_URL.match(source)
    if prefix is None:
        raise ApiError(
            422,
            "only data URLs are taken: data:image/jpeg;base64,... (or png, webp, gif, bmp); "
            "files are not read and addresses are not fetched",
            field,
        )
    try:
        content = base64.b64decode(source[prefix.end() :], validate=True)
        if has_too_many_exif_parts(io.BytesIO(content)):
            raise ApiError(422, EXIF_FAULT, field)
        # Reads no more than the header.
        with Image.open(_Header(content), formats=FORMATS) as picture:
            pixels = picture.width * picture.height
            is_jpeg = picture.format in ("JPEG", "MPO")  # MPO: a JPEG that names further pictures
    except (OSError, ValueError, SyntaxError):
        raise ApiError(422, UNREADABLE, field) from None
    except Image.DecompressionBombError:
        pixels, is_jpeg = limits.image_pixels + 1, False
    # Every scan goes over all pixels again. Inside the data of a scan its marker cannot occur.
    if is_jpeg and content.count(JPEG_SCAN) > limits.picture_scans:
        raise ApiError(422, f"the picture has more than {limits.picture_scans} scans", field)
    if pixels > limits.image_pixels:
        raise ApiError(422, f"the picture has more than {limits.image_pixels:,} pixels", field)
    return pixels
