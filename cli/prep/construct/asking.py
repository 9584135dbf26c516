"""Options and a server for the verbs of ``custos prep`` that ask models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.shared.command_line import command_line
from cli.shared.options.server import RequestOptions
from cli.shared.output_folders import output_folder

if TYPE_CHECKING:
    from clients.chat import Prices
    from clients.jobs import OnProgress
    from clients.messages import Decoding
    from data_prep.construction.model_writer import ModelWriter

Rows = Annotated[
    Path, typer.Option("--in", help="Read this JSONL, JSON, Parquet, CSV or TSV file of rows.")
]
OutFolder = Annotated[
    Path,
    typer.Option(
        callback=output_folder, help="Write rows, rejects and manifest.json to this folder."
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="Ask this model on the server. May be repeated. Default: none."),
]


@dataclass(frozen=True)
class Asking:
    """A server, and how models there are asked."""

    base_url: str
    request_options: RequestOptions
    decoding: Decoding
    source: Mapping[str, Any]
    """Description of the rows, for the manifest."""
    prices: Prices | None

    def writer(self, model: str, out: Path, on_progress: OnProgress) -> ModelWriter:
        """Return a writer of what a model replies.

        Raises:
            CustosError: If the variable of the key is not set.
        """
        from data_prep.construction.model_writer import ModelWriter

        return ModelWriter(
            self.request_options.server(self.base_url, model),
            self.decoding,
            self.prices,
            out,
            source=self.source,
            command=command_line(),
            on_progress=on_progress,
        )


def show_rejected(rejected: Mapping[str, int], out: Path) -> None:
    """Print how many rows were rejected for which reason."""
    if rejected:
        reasons = ", ".join(f"{count} {reason}" for reason, count in rejected.items())
        typer.echo(f"rejected: {sum(rejected.values())} ({reasons}): {out / 'rejects.jsonl'}")
