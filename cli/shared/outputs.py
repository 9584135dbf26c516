"""Commands, their values, and the files and folders that they may write to."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from judging.errors import CustosError, is_full, known_error
from judging.log_lines import one_line


class CommandGroup(TyperGroup):
    """A group of commands whose help has their whole summaries."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their whole summaries, which click would cut to one line."""
        names = self.list_commands(ctx)
        summaries = [self.commands[name].get_short_help_str(limit=1000) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(list(zip(names, summaries, strict=True)))


class Verbs(CommandGroup):
    """Outermost group of commands, which prints the user's mistakes on one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; print a user's mistake on one line and exit with status 2."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # The reader of the output has stopped, which is no mistake.
            raise
        except Exception as error:
            if (text := known_error(error)) is None:
                raise
            if _is_of_printing(error):
                text = f"standard output: {text}"
        typer.echo(f"error: {one_line(' '.join(text.split()))}", err=True)
        raise typer.Exit(2)


def _is_of_printing(error: Exception) -> bool:
    """Tell whether an error came from standard output, such as a file on a full disk."""
    if not isinstance(error, OSError) or error.filename is not None or not is_full(error):
        return False
    try:
        typer.echo()
    except OSError:
        return True
    return False


PathT = TypeVar("PathT", Path, str)

START_BYTES = 2048
"""Beginning of a page, in which it is known as that of a command."""
_OUTPUTS = "custos.outputs"
"""Where a command's context keeps the options that name its outputs, by parameter."""


class Verb(TyperCommand):
    """A command that refuses values that no command can use, and never overwrites its inputs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the values; refuse an empty one, as ``--out "$OUT"`` without such a variable.

        As a path it would be the current folder. An option with an empty default may be empty.
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
        """Refuse numbers that are not finite, texts that are not UTF-8, and inputs as outputs."""
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
            others = outputs if not os.path.isfile(out) else ctx.params
            texts = _texts(ctx.params[name] for name in others if name != output)
            if os.path.realpath(out) in map(os.path.realpath, texts):
                raise CustosError(
                    f"{option} '{out}': that is another file of this command; name a new file"
                )
        return super().invoke(ctx)


def _spelling(parameter: Any) -> str:
    """Name an option or argument as its help gives it."""
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
    """Check an option that names a folder to write to; callback of all such options."""
    _check_output(ctx, param, path)
    if path is not None and os.path.exists(path) and not os.path.isdir(path):
        raise CustosError(f"{param.opts[0]} '{path}': is a file; name a folder")
    return path


def output_file(ctx: typer.Context, param: typer.CallbackParam, path: PathT | None) -> PathT | None:
    """Check an option that names a file to write; callback of all such options."""
    _check_output(ctx, param, path)
    if path is not None and os.path.exists(path) and not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "no regular file"
        raise CustosError(f"{param.opts[0]} '{path}': is {kind}; name a file")
    return path


OutFile = Annotated[Path, typer.Option(callback=output_file)]
OutFolder = Annotated[Path, typer.Option(callback=output_folder)]


def _check_output(ctx: typer.Context, param: typer.CallbackParam, path: Path | str | None) -> None:
    """Check that there can be an output at a path, and remember that the option names one.

    Inside the current folder a command makes the folders that its output needs. Elsewhere the
    folder around the output must exist, because a missing one is most often a misspelt one. The
    folders of a URL are no folders.
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


def own(keys: Collection[str], report: str | None = None) -> Callable[[Path], bool]:
    """Make a test for an earlier output: whether it begins with a JSON object of these keys.

    The keys are those of every row of a JSONL file, or of the folder's file ``report``; an empty
    ``report`` stands for a JSON document itself. Of a list its first object counts.
    """

    def is_own(out: Path) -> bool:
        try:
            with (out if report is None else out / report).open("rb") as file:
                value = json.loads(file.readline() if report is None else file.read())
        except (OSError, ValueError, RecursionError):
            return False
        value = value[0] if isinstance(value, list) and value else value
        return isinstance(value, dict) and value.keys() >= set(keys)

    return is_own


def spare(
    sources: Iterable[Path], out: Path, names: Collection[str] = (), option: str = "--out"
) -> None:
    """Refuse an output that would replace what the command reads; ``names`` as of :func:`claim`."""
    written = {path.resolve() for path in [out / name for name in names] or [out]}
    for source in sources:
        if source.resolve() in written:
            raise CustosError(
                f"{option} '{out}': {source} lies there and would be replaced; "
                f"name a new {'folder' if names else 'file'}"
            )


def claim(
    out: Path,
    is_own: Callable[[Path], bool] | None = None,
    *,
    option: str = "--out",
    names: Collection[str] = (),
    sources: Iterable[Path] = (),
) -> None:
    """Refuse to write where a file would be replaced that is no earlier output of the command.

    An output is known by its content, so that nothing else has to lie beside it. What is empty may
    be replaced; without ``is_own`` nothing else may. ``names`` are the files that are written to a
    folder ``out``, none for a file; ``sources`` as of :func:`spare`.
    """
    spare(sources, out, names, option)
    existing = [
        path.name
        for path in [out / name for name in names] or [out]
        if path.exists() and not (path.is_file() and not path.stat().st_size)
    ]
    if not existing or (is_own is not None and is_own(out)):
        return
    if names:
        raise CustosError(
            f"{option} '{out}': the folder holds files of yours that would be replaced "
            f"({', '.join(existing)}); name a new folder"
        )
    kind = "exists already" if is_own is None else "exists and is no earlier output of this command"
    raise CustosError(f"{option} '{out}': {kind}; name a new file")


def claim_json(out: Path | None, *shapes: Collection[str], sources: Iterable[Path] = ()) -> None:
    """Claim the file of ``--json``, if it is given: what lies there must have the keys of a shape.

    Each shape is of a document that the command writes.
    """
    if out is not None:
        tests = [own(keys, report="") for keys in shapes]
        claim(out, lambda file: any(test(file) for test in tests), option="--json", sources=sources)


def claim_text(out: Path | None, option: str, *texts: str) -> None:
    """Claim the page of an option, if it is given: what lies there must hold texts near its top."""

    def is_own(file: Path) -> bool:
        with file.open("rb") as opened:
            start = opened.read(START_BYTES).decode(errors="replace")
        return all(text in start for text in texts)

    if out is not None:
        claim(out, is_own, option=option)
