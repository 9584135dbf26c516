"""The command line itself: what was typed, and options of the shape NAME=VALUE."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

from judging.errors import CustosError


def command_line() -> str:
    """Return the command as it was typed, for manifests and reports."""
    return shlex.join(["custos", *sys.argv[1:]])


def read_assignments(
    texts: Iterable[str] | None,
    option: str,
    expected: str = "NAME=VALUE",
    *,
    once: bool = False,
    may_be_empty: bool = False,
) -> dict[str, str]:
    """Read options of the shape ``NAME=VALUE``.

    Args:
        texts: One text per time that the option was given.
        option: Name of the option, for the error.
        expected: What the option should look like, for the error.
        once: Refuse a name that is given twice; otherwise the last value counts.
        may_be_empty: Whether there may be nothing after the ``=``.

    Raises:
        CustosError: If a text has no ``=`` or nothing on one side of it, or a name is repeated.
    """
    values: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        is_missing = not equals if may_be_empty else not value
        if not name or is_missing or (once and name in values):
            raise CustosError(f"{option} '{text}': expected {expected}")
        values[name] = value
    return values
