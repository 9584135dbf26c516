"""Options that the verbs of ``custos bench`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.output_folders import output_file

Name = Annotated[str, typer.Argument(help="Name of the benchmark; see custos bench list.")]
JsonOut = Annotated[
    Path | None,
    typer.Option("--json", callback=output_file, help="Write the figures to this file too."),
]
Items = Annotated[
    str, typer.Option(help="Read the official items from this file, folder or hub data set.")
]
