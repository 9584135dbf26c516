"""Options of the verbs that take a recipe."""

from __future__ import annotations

from typing import Annotated

import typer

Keys = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Set keys of the recipe, such as optim.lr=1e-4. Default: as in the recipe.",
    ),
]
