"""Images that come with a data set: paths made absolute, bytes saved as files."""

from __future__ import annotations

import hashlib
import os
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from judging.errors import CustosError
from judging.records import absolute_name


def image_names(value: Any, folder: Path, save_to: Path | None) -> tuple[str, ...]:
    """Turn the content of an image column into file names.

    Args:
        value: A path or URL, a ``{"bytes", "path"}`` record as Hugging Face data sets store one,
            or a list of these; ``None`` is no image.
        folder: What relative paths are relative to.
        save_to: Folder for images that come as bytes.

    Raises:
        CustosError: If the value is none of these, or holds bytes that are no image or that no
            folder was named for.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, list):
        return tuple(name for item in value for name in image_names(item, folder, save_to))
    if isinstance(value, str):
        return (absolute_name(value, folder),)
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        if save_to is None:
            raise CustosError("images come as bytes; name a folder to save them in")
        return (str(_save(value["bytes"], save_to)),)
    if isinstance(value, dict) and isinstance(value.get("path"), str):
        return (absolute_name(value["path"], folder),)
    raise CustosError(f"expected a path, image bytes or a list of these, got {value!r:.80}")


def _save(content: bytes, folder: Path) -> Path:
    """Save under a name made from the content, so that equal images are kept once."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(BytesIO(content)) as image:
            suffix = (image.format or "img").lower()
    except UnidentifiedImageError:
        raise CustosError(f"{len(content)} bytes that are not an image") from None
    path = folder.resolve() / f"{hashlib.sha256(content).hexdigest()[:16]}.{suffix}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(content)
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    return path
