"""``custos serve``: judges over HTTP."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from judging import CustosError, Judge
from judging.card import CARD_FILE
from judging.judge import SHIPPED

SAMPLE = {
    "question": "What is the capital of France?",
    "references": ["Paris"],
    "reference_mode": "any",
    "response": "It is Paris.",
}


def serve(
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=RUN, or RUN under its own name: run folder, shipped judge or backbone. "
            "May be repeated. Default: every shipped judge."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    host: Annotated[str, typer.Option(help="Loopback address to listen on.")] = "127.0.0.1",
) -> None:
    """Answer POST /judge with verdicts. GET /judges lists the judges.

    Example: custos serve --judge qs=runs/qs --port 8000
    """
    from serve.app import create_app
    from serve.server import bind, run, url
    from serve.service import Service

    sources = named_sources(judge or shipped_judges())
    with bind(host, port) as listener:
        judges = {name: Judge.load(source) for name, source in sources.items()}
        typer.echo(f"serving {', '.join(judges)} at {url(listener)}")
        typer.echo(
            f"try: curl -s {url(listener)}/judge -H 'Content-Type: application/json' "
            f"-d {shlex.quote(json.dumps(SAMPLE))}"
        )
        run(create_app(Service(judges)), listener)


def shipped_judges() -> list[str]:
    """Names of the judges that came with custos.

    Raises:
        CustosError: If there are none.
    """
    names = sorted(card.parent.name for card in SHIPPED.glob(f"*/{CARD_FILE}"))
    if not names:
        raise CustosError(
            "no judge came with this installation: name one with --judge NAME=RUN, where RUN is a "
            "run folder, or serve the untrained backbone with --judge embedded"
        )
    return names


def named_sources(given: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=RUN`` and ``RUN`` options; a bare one is named after its last path part.

    Raises:
        CustosError: If a name or source is empty, or a name is given twice.
    """
    sources: dict[str, str] = {}
    for text in given:
        name, separator, source = text.partition("=")
        if not separator:
            name, source = Path(text).name, text
        if not name or not source:
            raise CustosError(f"--judge '{text}': expected NAME=RUN")
        if name in sources:
            raise CustosError(f"--judge '{text}': there is already a judge '{name}'")
        sources[name] = source
    return sources
