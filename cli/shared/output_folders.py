"""Checks of a command's values, of the folders that it makes and of the files that it replaces."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from judging.errors import CustosError

PathT = TypeVar("PathT", Path, str)

_OUTPUTS = "custos.outputs"
"""Where a command's context keeps the options that name its outputs, by parameter."""


class Verb(TyperCommand):
    """A command that refuses values that no command can use, and never overwrites its inputs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Check that no value is empty, and read the values.

        Raises:
            CustosError: If one is, as ``--out "$OUT"`` without such a variable: as a path it would
                be the current folder. An option with an empty default may be empty.
        """
        typed, _, _ = self.make_parser(ctx).parse_args(list(args))
        for parameter in self.params:
            value = typed.get(parameter.name)
            if parameter.default != "" and "" in (
                value if isinstance(value, list | tuple) else [value]
            ):
                raise CustosError(f"{_spelling(parameter)} '': is empty; give a value")
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Check the options and run the command.

        Raises:
            CustosError: If another option or argument names the same file as an output does, if a
                number is not finite, or if a value is not UTF-8 text, which no report could hold.
        """
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise CustosError(f"{_spelling(parameter)} '{value}': expected a finite number")
        for text in _texts(ctx.params.values()):
            if (shown := text.encode(errors="replace").decode()) != text:
                raise CustosError(
                    f"'{shown}' is not UTF-8 text; rename the file or change the option"
                )
        outputs = ctx.meta.get(_OUTPUTS, {})
        for output, option in outputs.items():
            out = ctx.params[output]
            others = (
                value
                for name, value in ctx.params.items()
                if name != output and (name in outputs or os.path.isfile(out))
            )
            if os.path.realpath(out) in map(os.path.realpath, _texts(others)):
                raise CustosError(
                    f"{option} '{out}': that is another file of this command; name a new file"
                )
        return super().invoke(ctx)


def _spelling(parameter: Any) -> str:
    """Return the name of an option or argument, as its help gives it."""
    if parameter.param_type_name == "option":
        return str(parameter.opts[0])
    return str(parameter.metavar or parameter.name.upper())


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield all texts in the values of options, and of ``NAME=FILE`` the file as well."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _texts(value)
        elif isinstance(value, Path | str):
            yield from {str(value), str(value).rpartition("=")[2]}


def output_folder(
    ctx: typer.Context, param: typer.CallbackParam, path: PathT | None
) -> PathT | None:
    """Return the value of an option that names a folder to write to; callback of all such options.

    Raises:
        CustosError: If a file lies there, or nothing can be written there.
    """
    _check_output(ctx, param, path)
    if path is not None and os.path.exists(path) and not os.path.isdir(path):
        raise CustosError(f"{param.opts[0]} '{path}': is a file; name a folder")
    return path


def output_file(ctx: typer.Context, param: typer.CallbackParam, path: PathT | None) -> PathT | None:
    """Return the value of an option that names a file to write; callback of all such options.

    Raises:
        CustosError: If a folder or a device lies there, or nothing can be written there.
    """
    _check_output(ctx, param, path)
    if path is not None and os.path.exists(path) and not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "no regular file"
        raise CustosError(f"{param.opts[0]} '{path}': is {kind}; name a file")
    return path


def _check_output(ctx: typer.Context, param: typer.CallbackParam, path: Path | str | None) -> None:
    """Check that there can be an output at a path, and remember that the option names one.

    Inside the current folder a command makes the folders that its output needs. Elsewhere the
    folder around the output must exist, because a missing one is most often a misspelt one. The
    folders of a URL are no folders.

    Raises:
        CustosError: If the folder around the output is missing and not in the current folder, or
            if nothing can be written there.
    """
    if path is None or "://" in str(path):
        return
    ctx.meta.setdefault(_OUTPUTS, {})[param.name] = param.opts[0]
    resolved: Path = Path(path).resolve()
    folder: Path = resolved.parent
    if not folder.is_dir() and not folder.is_relative_to(Path.cwd()):
        missing = next(parent for parent in (folder, *folder.parents) if parent.parent.is_dir())
        raise CustosError(
            f"{param.opts[0]} '{path}': there is no folder {missing}; "
            f"correct the path, or make it with: mkdir -p {shlex.quote(str(folder))}"
        )
    places = [resolved] if resolved.is_dir() else [folder, *folder.parents]
    place = next(place for place in places if place.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise CustosError(
            f"{param.opts[0]} '{path}': {place} is no folder that you may write to; "
            "name another place"
        )


def check_is_new(out: Path) -> None:
    """Refuse an ``--out`` that would replace a file.

    Raises:
        CustosError: If the file exists.
    """
    if out.exists():
        raise CustosError(f"--out '{out}': exists already; name a new file")


def check_own_rows(option: str, out: Path, keys: Collection[str]) -> None:
    """Refuse to replace a JSONL file that holds no earlier output of the same command.

    Args:
        option: Option that names the file.
        out: File that is about to be written; an empty or missing one may be.
        keys: Keys of every row that the command writes.

    Raises:
        CustosError: If something else lies there.
    """
    if not out.exists():
        return
    try:
        with out.open("rb") as file:
            line = file.readline()
        row = json.loads(line) if line else dict.fromkeys(keys)
    except (OSError, ValueError):
        row = None
    if not isinstance(row, dict) or not row.keys() >= set(keys):
        raise CustosError(f"{option} '{out}': exists and holds other rows; name a new file")


def check_own_files(out: Path, names: Collection[str], report: str, keys: Collection[str]) -> None:
    """Refuse to replace files in a folder that holds no earlier output of the same command.

    Args:
        out: Folder of the output; need not exist.
        names: Files that the command writes there.
        report: The one of them by which its output is known, a JSON object ...
        keys: ... with these keys.

    Raises:
        CustosError: If one of the files exists, and the report does not or is another one.
    """
    existing = [name for name in names if (out / name).exists()]
    if existing and not _has_keys(out / report, keys):
        raise CustosError(
            f"--out '{out}': the folder holds files of yours that would be replaced "
            f"({', '.join(existing)}); name a new folder"
        )


def check_keeps_sources(out: Path, names: Collection[str], sources: Iterable[Path]) -> None:
    """Refuse a folder in which a command would replace a file that it reads.

    Args:
        out: Folder of the output; need not exist.
        names: Files that the command writes there.
        sources: Files that it reads.

    Raises:
        CustosError: If one of these is a file that would be written.
    """
    written = {(out / name).resolve() for name in names}
    for source in sources:
        if source.resolve() in written:
            raise CustosError(
                f"--out '{out}': {source} lies there and would be replaced; name a new folder"
            )


def _has_keys(path: Path, keys: Collection[str]) -> bool:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(value, dict) and value.keys() >= set(keys)
