"""Options that say what a verb prints and when it fails."""

from __future__ import annotations

from typing import Annotated

import typer

AllowFailed = Annotated[
    bool, typer.Option("--allow-failed", help="Exit with status 0 even if rows failed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Risk = Annotated[
    float | None,
    typer.Option(
        "--risk",
        min=0.001,
        max=0.5,
        help="Share of wrong verdicts that you can live with, such as .05. Verdicts whose "
        "confidence does not suffice for it get needs_review. Default: none.",
    ),
]
