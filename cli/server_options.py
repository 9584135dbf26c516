"""Options that every verb with an OpenAI-compatible server shares."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from judging.errors import CustosError

if TYPE_CHECKING:
    from clients.chat import Prices

KeyEnv = Annotated[
    str | None, typer.Option(help="Environment variable that holds the server's API key.")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Most requests to the server at once.")]
Deadline = Annotated[float, typer.Option(min=1, help="Seconds one try may take.")]
PromptPrice = Annotated[float, typer.Option(min=0, help="A million prompt tokens cost.")]
CompletionPrice = Annotated[float, typer.Option(min=0, help="A million completion tokens cost.")]


def api_key(variable: str | None) -> str:
    """The key in an environment variable; empty without one.

    Raises:
        CustosError: If the variable is not set.
    """
    if variable is None:
        return ""
    key = os.environ.get(variable, "")
    if not key:
        raise CustosError(f"--key-env '{variable}': no such environment variable, or it is empty")
    return key


def prices(prompt: float, completion: float) -> Prices | None:
    """Prices of a million tokens; ``None`` if neither is known."""
    from clients.chat import Prices

    return Prices(prompt, completion) if prompt or completion else None
