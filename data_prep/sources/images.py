"""Images that come with a data set: paths made absolute, bytes saved as files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError
from judging.files.atomic import atomic_path
from judging.files.pictures import EXIF_FAULT, has_too_many_exif_parts
from judging.files.records import absolute_name

if TYPE_CHECKING:
    from PIL.Image import Image as OpenedImage

HASH_CHARS = 16
"""Hex digits of the SHA-256 of its content that an image is named by."""


def image_names(value: Any, folder: Path, save_to: Path | None) -> tuple[str, ...]:
    """Turn the content of an image column into file names.

    Args:
        value: A path or URL, bytes, a ``{"bytes", "path"}`` record as Hugging Face data sets store
            one, or a list of these; ``None`` is no image.
        folder: Folder that relative paths start from.
        save_to: Folder for images that come as bytes.

    Raises:
        CustosError: If the value is none of these, if its bytes are no image, or if it holds bytes
            and ``save_to`` is ``None``.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, list):
        return tuple(name for item in value for name in image_names(item, folder, save_to))
    if isinstance(value, str):
        return (absolute_name(value, folder),)
    content = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(content, bytes):
        if save_to is None:
            raise CustosError("images come as bytes; name a folder to save them in")
        return (str(save_image(content, save_to)),)
    if isinstance(value, dict) and isinstance(value.get("path"), str):
        return (absolute_name(value["path"], folder),)
    raise CustosError(f"expected a path, image bytes or a list of these, got {value!r:.80}")


def content_name(content: bytes, suffix: str) -> str:
    """Name a file after its content, so that equal images have one name."""
    return f"{hashlib.sha256(content).hexdigest()[:HASH_CHARS]}.{suffix}"


@contextmanager
def opened_image(content: bytes) -> Iterator[OpenedImage]:
    """Open an image.

    Raises:
        CustosError: If the bytes are no image, or one of too many pixels or parts to be opened.
    """
    from PIL import Image

    if has_too_many_exif_parts(BytesIO(content)):
        raise CustosError(EXIF_FAULT)
    try:
        with Image.open(BytesIO(content)) as image:
            yield image
    # A broken AVIF raises RuntimeError.
    except (OSError, ValueError, RuntimeError, Image.DecompressionBombError):
        raise CustosError(f"{len(content)} bytes that are not an image") from None


def save_image(content: bytes, folder: Path) -> Path:
    """Save an image in a folder under its ``content_name`` and return its absolute path.

    The folder is made if it is missing. An image that is there already is not written again.

    Raises:
        CustosError: If the bytes are no image.
    """
    with opened_image(content) as image:
        suffix = (image.format or "img").lower()
    path = folder.resolve() / content_name(content, suffix)
    if not path.exists():
        with atomic_path(path) as partial:
            partial.write_bytes(content)
    return path
