"""Templates, style, script and embedded pictures of the HTML pages of reports.

A page needs no other file. Texts from outside are escaped, and the page's policy lets no script run
but its own.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.report.markdown import TEMPLATES, number, p_value, with_interval
from judging.errors import CustosError
from judging.files.pictures import read_image

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_ITEMS = 2000
"""Most items on a page; a browser is slow to search more."""
THUMBNAIL_PIXELS = 480
THUMBNAIL_QUALITY = 78


def page_templates(folder: Path = TEMPLATES) -> Environment:
    """Return the environment of a folder's HTML templates.

    Templates can import ``sections.html`` of this room. They can use ``style``, ``script`` and
    ``script_hash``, and the filters ``number``, ``with_interval`` and ``p_value``.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    environment.globals |= {
        "style": (TEMPLATES / "page.css").read_text(encoding="utf-8"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    environment.filters |= {
        "number": number,
        "with_interval": with_interval,
        "p_value": p_value,
    }
    return environment


def drawn_url(draw: Callable[[Path], None]) -> str:
    """Return the PNG that a function draws into a file, as a data URL."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chart.png"
        draw(path)
        return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def thumbnails(sources: Iterable[str]) -> dict[str, str]:
    """Return small JPEGs of pictures, as data URLs by source.

    Pictures that cannot be read are left out. Web addresses are never fetched.
    """
    urls = {}
    for source in dict.fromkeys(sources):
        try:
            urls[source] = _thumbnail(source)
        except CustosError:
            continue
    return urls


def _thumbnail(source: str) -> str:
    picture = read_image(source)
    picture.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    buffer = io.BytesIO()
    picture.save(buffer, "jpeg", quality=THUMBNAIL_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
