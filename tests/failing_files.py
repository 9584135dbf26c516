"""A folder in which one call on a file fails: the n-th, whatever it is."""

import builtins
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATH_CALLS = ("open", "unlink", "chmod", "replace", "rename")


class FailingFiles:
    """Calls on the files of a folder, made through ``open``, ``os`` and ``fcntl``.

    Args:
        folder: The folder.
        failing: Number of the call that fails, from 0. Default: none fails.
        error: Its error, a number of ``errno``.
    """

    def __init__(self, folder: Path, failing: int = -1, error: int = 0) -> None:
        self.calls: list[str] = []
        """Each call and its file."""
        self._folder = f"{folder}/"
        self._failing = failing
        self._error = error

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Count the calls in this block, and let one of them fail."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builtins, "open", self._open)
            patch.setattr(io, "open", self._open)
            for name in PATH_CALLS:
                patch.setattr(os, name, self._with_path(name, getattr(os, name)))
            patch.setattr(fcntl, "flock", self._with_descriptor("flock", fcntl.flock))
            patch.setattr(os, "fsync", self._with_descriptor("fsync", _do_nothing))
            yield

    def fails(self, call: str, path: str) -> bool:
        """Note a call; return whether it is the one that fails."""
        self.calls.append(f"{call} {f'{path}/'.removeprefix(self._folder).rstrip('/') or '.'}")
        return len(self.calls) - 1 == self._failing

    def error(self, *path: str) -> OSError:
        """Return the error of the call that fails; with the path if the system knows it."""
        return OSError(self._error, os.strerror(self._error), *path)

    def _is_ours(self, path: object) -> bool:
        return isinstance(path, str | Path) and f"{path}/".startswith(self._folder)

    def _with_path(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *others: Any, **options: Any) -> Any:
            if self._is_ours(path) and self.fails(name, str(path)):
                raise self.error(str(path))
            return function(path, *others, **options)

        return call

    def _with_descriptor(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(descriptor: int, *others: Any) -> Any:
            path = _path_of(descriptor)
            if self._is_ours(path) and self.fails(name, path):
                raise self.error()
            return function(descriptor, *others)

        return call

    def _open(
        self, file: Any, mode: str = "r", buffering: int = -1, *text: Any, **more: Any
    ) -> Any:
        """Open a file; those of the folder that have a name have calls that can fail."""
        if not self._is_ours(file) or "opener" in more:
            return _OPEN(file, mode, buffering, *text, **more)
        if self.fails(f"open({mode})", str(file)):
            raise self.error(str(file))
        raw = FailingFile(self, str(file), mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        buffer: Any
        if "+" in mode:
            buffer = io.BufferedRandom(raw)
        else:
            buffer = io.BufferedReader(raw) if "r" in mode else io.BufferedWriter(raw)
        return buffer if "b" in mode else io.TextIOWrapper(buffer, *text, **more)


_OPEN = open


class FailingFile(io.FileIO):
    """An open file of a folder with calls that can fail. A write that fails writes the half."""

    def __init__(self, files: FailingFiles, path: str, mode: str) -> None:
        super().__init__(path, mode)
        self._files = files
        self._path = path

    def write(self, content: Any) -> int:
        if self._files.fails("write", self._path):
            super().write(bytes(content)[: len(content) // 2])
            raise self._files.error()
        return super().write(content)

    def readinto(self, buffer: Any) -> int:
        self._read()
        return super().readinto(buffer)

    def readall(self) -> bytes:
        self._read()
        return super().readall()

    def _read(self) -> None:
        if self._files.fails("read", self._path):
            raise self._files.error()

    def truncate(self, size: int | None = None) -> int:
        if self._files.fails("truncate", self._path):
            raise self._files.error()
        return super().truncate(size)

    def close(self) -> None:
        is_written = not self.closed and self.writable()
        super().close()
        if is_written and self._files.fails("close", self._path):
            raise self._files.error()


def _do_nothing(descriptor: int) -> None:
    """Stand for ``fsync``, which takes long on some disks and changes nothing that is read."""


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
