"""Options that the verbs of ``custos bench`` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.shared.judges import is_address
from cli.shared.options.engine import EngineOptions
from cli.shared.options.server import ChatModel, Concurrency, api_key
from cli.shared.output_folders import output_file
from judging.errors import CustosError

if TYPE_CHECKING:
    from clients.kept_verdicts import Grader

Name = Annotated[str, typer.Argument(help="Name of the benchmark; see custos bench list.")]
JsonOut = Annotated[
    Path | None,
    typer.Option("--json", callback=output_file, help="Write the figures to this file too."),
]
Items = Annotated[
    str, typer.Option(help="Read the official items from this file, folder or hub data set.")
]


@dataclass(frozen=True)
class BenchmarkJudgeOptions(EngineOptions):
    """Where a benchmark's judge runs, which may also be a chat model on a server."""

    concurrency: Concurrency = 8
    model: ChatModel = None

    def load(self, source: str) -> Grader:
        """Load a judge as ``load_grader``, or take a chat model on a server as the judge.

        Raises:
            CustosError: If the judge cannot be loaded, or the address is that of an
                OpenAI-compatible server and no model is named.
        """
        if not is_address(source) or (
            self.model is None and not source.rstrip("/").endswith("/v1")
        ):
            return self.load_grader([source])
        if self.model is None:
            raise CustosError("--model: name the model to ask on the server")
        from clients.chat_judge import ChatJudge
        from clients.connection import ModelServer

        server = ModelServer(
            source,
            self.model,
            api_key(self.key_env),
            concurrency=self.concurrency,
            deadline=self.deadline,
        )
        return ChatJudge(server)
