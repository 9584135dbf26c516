"""The user's mistakes on one line."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from judging.errors import CustosError, error_text
from judging.log_lines import one_line


class Verbs(TyperGroup):
    """A group of commands that prints the user's mistakes on one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; exit with status 2 on a ``CustosError`` or an ``OSError``."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # The reader of the output has stopped, which is no mistake.
            raise
        except (CustosError, OSError) as error:
            text = one_line(" ".join(error_text(error).split()))
            typer.echo(f"error: {text}", err=True)
            raise typer.Exit(2) from None
