"""Folders that a command may make for its output."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TypeVar

import typer

from judging.errors import CustosError

PathT = TypeVar("PathT", Path, str)


def in_known_folder(param: typer.CallbackParam, path: PathT | None) -> PathT | None:
    """Return the value of an option that names an output; the callback of all such options.

    Inside the current folder a command makes the folders that its output needs. Elsewhere the
    folder around the output must exist, because a missing one is most often a misspelt one. The
    folders of a URL are no folders.

    Raises:
        CustosError: If the folder around the output is missing and not in the current folder.
    """
    if path is None or "://" in str(path):
        return path
    folder: Path = Path(path).resolve().parent
    if not folder.is_dir() and not folder.is_relative_to(Path.cwd()):
        missing = next(parent for parent in (folder, *folder.parents) if parent.parent.is_dir())
        raise CustosError(
            f"{param.opts[0]} '{path}': there is no folder {missing}; "
            f"correct the path, or make it with: mkdir -p {shlex.quote(str(folder))}"
        )
    return path
