"""Groups of commands, which print whole summaries and the user's mistakes on one line."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from judging.errors import known_error
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
        """Run the chosen command; exit with status 2 on an error that it must expect."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # The reader of the output has stopped, which is no mistake.
            raise
        except Exception as error:
            if (text := known_error(error)) is None:
                raise
        typer.echo(f"error: {one_line(' '.join(text.split()))}", err=True)
        raise typer.Exit(2)
