"""The encoding of files of text, and what their users state about it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from judging.errors import CustosError


@dataclass(frozen=True)
class TextFormat:
    """Delimiter and encoding that a user states for a table; ``None``: the file decides."""

    delimiter: str | None = None
    encoding: str | None = None


NOTHING_STATED = TextFormat()


@contextmanager
def open_text(path: Path, encoding: str | None, newline: str = "") -> Iterator[TextIO]:
    """Open a file of text; bytes that cannot be decoded become lone surrogates.

    Args:
        path: File to read.
        encoding: As the user states it; ``None``: UTF-8. A byte order mark knows better.
        newline: As ``open`` takes it.

    Raises:
        CustosError: If it is not text of this encoding at all.
    """
    with path.open("rb") as raw:
        start = raw.read(3)
    name = codecs.lookup(encoding or "utf-8").name
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        name = "utf-16"
    elif name == "utf-8" or start == codecs.BOM_UTF8:
        name = "utf-8-sig"
    try:
        with path.open(encoding=name, errors="surrogateescape", newline=newline) as file:
            yield file
    except UnicodeError:
        raise CustosError(f"{path}: {not_text(encoding or name)}") from None


def not_text(encoding: str) -> str:
    """Return what is wrong with bytes that are no text of an encoding, and the way out."""
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    return (
        f"is not {name} text; state the encoding with --encoding, such as cp1252 (Windows), or "
        "save the table as UTF-8 text (Excel: 'CSV UTF-8')"
    )
