"""Options that every verb with an OpenAI-compatible server shares."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judging.errors import CustosError

if TYPE_CHECKING:
    from clients.chat import Prices
    from judging import Judge

Engine = Annotated[
    Literal["tree", "openai"],
    typer.Option(
        help="Where the model runs: here (tree), or on an OpenAI-compatible server (openai), where "
        "--judge MODEL=RUN says which model there is which judge."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(help="That server, with the version: http://127.0.0.1:8001/v1.")
]
ServerUrl = Annotated[
    str, typer.Option(help="OpenAI-compatible server, version included: http://host:8000/v1")
]
Writer = Annotated[str, typer.Option(help="Model that writes.")]
Temperature = Annotated[float | None, typer.Option(min=0, help="Default: the server's own.")]
KeyEnv = Annotated[
    str | None,
    typer.Option(
        help="Environment variable that holds the server's API key. "
        "Default: none; for a custos serve, CUSTOS_KEY."
    ),
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


def service_key(variable: str | None) -> str:
    """The access key of a ``custos serve``; ``CUSTOS_KEY`` holds it where no variable is named.

    Raises:
        CustosError: As :func:`api_key`.
    """
    return api_key(variable) if variable else os.environ.get("CUSTOS_KEY", "")


def prices(prompt: float, completion: float) -> Prices | None:
    """Prices of a million tokens; ``None`` if neither is known."""
    from clients.chat import Prices

    return Prices(prompt, completion) if prompt or completion else None


def judge_on(
    engine: str,
    judge: str,
    base_url: str | None,
    key: str,
    concurrency: int,
    deadline: float,
    **patience: Any,
) -> Judge:
    """Load a judge where ``--engine`` says; further settings are those of the server there.

    Raises:
        CustosError: If it cannot be loaded, or the options do not go together.
    """
    from judging import Judge

    if (engine == "openai") != (base_url is not None):
        raise CustosError("--engine openai and --base-url URL go together; give both or neither")
    if base_url is None:
        return Judge.load(judge)
    from clients.chat import ModelServer
    from clients.remote_judge import remote_judge, remote_source

    model, source = remote_source(judge)
    server = ModelServer(
        base_url, model, key, concurrency=concurrency, deadline=deadline, **patience
    )
    found = remote_judge(server, source)
    typer.echo(f"{model} at {base_url}: {found.engine.posterior} posterior", err=True)
    return found
