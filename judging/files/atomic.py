"""Files and folders that appear whole or not at all, and are there after a power cut."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from judging.errors import system_errors_at


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle(path: Path) -> None:
    """Sync a file or folder; of a file the user's umask decides who may read it, as of its folder.

    Safetensors makes files that only their owner may read.
    """
    if path.is_file() and not path.is_symlink():
        path.chmod(path.parent.stat().st_mode & 0o666)
    sync(path)


def replace(partial: Path, final: Path) -> None:
    """Give a file that is complete its final name; both are on the disk when this returns."""
    sync(partial)
    os.replace(partial, final)
    sync(final.parent)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a file to write into; it becomes ``path`` if the block ends without an error.

    The user's umask decides who may read it. An ``OSError`` names ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}."
    partial = path.with_name(f"{prefix}{secrets.token_hex(4)}")
    with system_errors_at(path, prefix):
        partial.touch(exist_ok=False)
        mode = partial.stat().st_mode
        try:
            yield partial
            partial.chmod(mode)  # safetensors replaces it by a file that only its owner may read
            replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[str]]:
    """Open a text file that appears under ``path`` only when the block ends without an error."""
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8") as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Write a text file, atomically."""
    with atomic_write(path) as file:
        file.write(text)


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """Yield a folder to write into; it becomes ``final`` if the block ends without an error.

    An ``OSError`` names ``final``, also for the files in it.
    """
    partial = final.parent / f".{final.name}.partial"
    with system_errors_at(final, partial.name):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            yield partial
            for path in (*partial.rglob("*"), partial):
                settle(path)
            shutil.rmtree(final, ignore_errors=True)
            partial.rename(final)
            sync(final.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
