"""The file that a name was probably meant to be."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path


def nearest_file(path: Path, suffixes: Collection[str]) -> str:
    """Return ``; the nearest is 'FILE'``, or an empty text if no file is near.

    If the file is a link to one that does not exist, this is said instead.

    Args:
        path: File that does not exist.
        suffixes: Endings of the files in its folder that may be meant.
    """
    if path.is_symlink():
        return f"; it is a link to '{path.readlink()}', which does not exist"
    try:
        files = {
            file.stem: file.name
            for file in path.parent.iterdir()
            if file.suffix in suffixes and file.is_file()
        }
    except OSError:
        return ""
    # Without their endings, which are alike and would make every file near.
    near = get_close_matches(path.stem, files, n=1)
    return f"; the nearest is '{path.with_name(files[near[0]])}'" if near else ""
