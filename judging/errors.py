"""Errors that the person at the keyboard can fix."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError


class CustosError(Exception):
    """A mistake in what the user gave (a file, a row, a flag, a missing backbone).

    Entry points print its message on one line without a traceback. The message names what is wrong,
    shows the value, and says what to do instead.
    """


class FieldError(CustosError):
    """A mistake in one field of a request, a row or a settings file.

    Args:
        field: Dotted path of the field; empty if the object as a whole is wrong.
        message: What is wrong with it.
        location: File and row, or other place of the field; empty if the caller adds it.
    """

    def __init__(self, field: str, message: str, location: str = "") -> None:
        parts = (location, f"field '{field}'" if field else "", message)
        super().__init__(": ".join(part for part in parts if part))
        self.field = field
        self.message = message
        self.location = location

    @classmethod
    def from_validation(
        cls, error: ValidationError, location: str = "", names: Collection[str] = ()
    ) -> FieldError:
        """Return the first of the errors of :meth:`all_from_validation`."""
        return cls.all_from_validation(error, location, names)[0]

    @classmethod
    def all_from_validation(
        cls, error: ValidationError, location: str = "", names: Collection[str] = ()
    ) -> list[FieldError]:
        """Return the errors that Pydantic reports, in words for users.

        ``names`` are the model's fields, to name the one nearest to an unknown field.
        """
        errors = []
        for mistake in error.errors(include_url=False):
            field = ".".join(str(part) for part in mistake["loc"])
            if mistake["type"] == "extra_forbidden":
                message = f"unknown field{nearest_name(field, names)}"
            elif mistake["type"] == "tuple_type":
                message = 'expected a list, such as ["text"]'
            elif mistake["type"] == "string_type":
                kind = type(mistake["input"])
                message = f"expected a text, got {_KINDS.get(kind, kind.__name__)}"
            else:
                message = mistake["msg"].removeprefix("Value error, ")
            if mistake["input"] is None and mistake["type"] != "string_type":
                message += ", got null"
            errors.append(cls(field, message, location))
        return errors

    def at(self, location: str) -> FieldError:
        """Return the same error with the place where the field was read."""
        return FieldError(self.field, self.message, location)


class InvalidRequest(CustosError):
    """A request that its receiver refuses, however often it is sent."""


class Missing(CustosError):
    """A thing that must be fetched or made first and is not there: a backbone, a split."""


class Unparsed(CustosError):
    """An answer of a model that is none of the labels."""


_KINDS: dict[type, str] = {
    **{type(None): "null", bool: "true or false", int: "a number", float: "a number"},
    **{dict: "an object", list: "a list"},
}
"""Kinds of JSON values, by their types here."""
_LOOP = "Symlink loop from "
"""Beginning of the error of :meth:`Path.resolve`."""
_NUMBER = re.compile(r"\(os error (\d+)\)")
"""The system's number of an error in a text of Rust's."""
LONGEST_NAME = 200
"""Most characters of a name to compare with others: time grows with their square."""


def nearest_name(name: str, names: Collection[str]) -> str:
    """Return ``; the nearest is 'NAME'``, or an empty text if no name is near."""
    near = get_close_matches(name[:LONGEST_NAME], names, n=1, cutoff=0.5)
    return f"; the nearest is '{near[0]}'" if near else ""


def error_text(error: CustosError | OSError) -> str:
    """Return the text of an error; a system's error begins with its file, as ours do."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    name = _name_of(error)
    way_out = "; make room, then repeat the command" if is_full(error) else ""
    return f"{'' if name is None else f'{name}: '}{error.strerror}{way_out}"


def is_full(error: OSError) -> bool:
    """Tell whether an error says that a disk, or a user's part of it, has no room left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _name_of(error: OSError) -> str | None:
    """Name the file of a system's error: of a copied or renamed one, the new file."""
    name = error.filename if error.filename2 is None else error.filename2
    return None if name is None else str(name)


def lacks_memory(error: BaseException) -> bool:
    """Tell whether an error says that there is too little memory, in any library's words."""
    text = str(error).lower()
    words = ("out of memory", "allocate memory", "failed to map segment")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | ImportError) and any(word in text for word in words)
    )


def known_error(error: BaseException) -> str | None:
    """Return the text of an error that a command must expect; ``None`` for a fault of its own."""
    if isinstance(error, CustosError | OSError):
        return error_text(error)
    if lacks_memory(error):
        return (
            "out of memory; end other programs, raise the limit (ulimit -v, or the container's), "
            "or take a smaller backbone or smaller batches"
        )
    if isinstance(error, RuntimeError) and str(error).startswith(_LOOP):
        return f"{str(error).removeprefix(_LOOP)}: a link that leads back to itself; name a file"
    return None


@contextmanager
def errors_at(location: str) -> Iterator[None]:
    """Name the location in every known error that the block raises."""
    try:
        yield
    except FieldError as error:
        raise error.at(location) from None
    except CustosError as error:
        raise CustosError(f"{location}: {error}") from None


@contextmanager
def system_errors_at(path: Path, prefix: str | None = None) -> Iterator[None]:
    """Name a file in every error of the system that the block raises, unless it names another one.

    The system names no file where a call has only its number, as for reading, writing and syncing.
    Names of temporary files that become it, or of their folder, begin with ``prefix``.
    """
    try:
        yield
    except Exception as error:
        if (found := as_of_system(error)) is None:
            raise
        name = _name_of(found)
        is_temporary = prefix is not None and any(
            part.startswith(prefix) for part in Path(name or "").parts
        )
        if name is not None and not is_temporary:
            raise
        # A library such as Arrow has words of its own for a full disk.
        reason = os.strerror(found.errno) if found.errno else found.strerror or str(found)
        raise OSError(found.errno, reason, str(path)) from None


def as_of_system(error: Exception) -> OSError | None:
    """Take an error for one of the system, if it is one.

    Safetensors words those of its writes, and so does tokenizers, which has no class for them.
    """
    if isinstance(error, OSError):
        return error
    is_worded = type(error) is Exception or type(error).__name__ == "SafetensorError"
    number = _NUMBER.search(str(error)) if is_worded else None
    return OSError(int(number[1]), "") if number else None
