"""Pointers that Git LFS leaves in the place of large files, where it did not fetch them."""

from __future__ import annotations

from pathlib import Path

from judging.errors import CustosError

LFS_POINTER = "this is a pointer of Git LFS, not the file; fetch it with 'git lfs pull'"
_START = b"version https://git-lfs.github.com/spec/"


def is_lfs_pointer(path: Path) -> bool:
    """Return whether a file is such a pointer.

    Raises:
        OSError: If it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(_START)) == _START


def refuse_lfs_pointer(path: Path) -> None:
    """Refuse a file that is such a pointer.

    Raises:
        CustosError: With its name and what to do.
        OSError: If it cannot be read.
    """
    if is_lfs_pointer(path):
        raise CustosError(f"{path}: {LFS_POINTER}")
