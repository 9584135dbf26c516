"""Options that say what a verb prints and when it fails."""

from __future__ import annotations

from typing import Annotated

import typer

AllowFailed = Annotated[
    bool, typer.Option("--allow-failed", help="Exit with status 0 even if rows failed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
