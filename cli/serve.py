"""``custos serve``: judges over HTTP."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.server_options import BaseUrl, Concurrency, Engine, KeyEnv, api_key, judge_on
from judging import CustosError, Judge
from judging.card import shipped_judges

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
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="File of access keys, one a line. Default: CUSTOS_API_KEYS, by commas."),
    ] = None,
    allow_open: Annotated[
        bool, typer.Option("--allow-open", help="Let other machines call without a key.")
    ] = False,
    image_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host that pictures may be fetched from over https. May be repeated. "
            "Default: none, pictures come as data URLs."
        ),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder to keep verdicts in. Default: none are kept.")
    ] = None,
    cache_mb: Annotated[int, typer.Option(min=1, help="Most megabytes of kept verdicts.")] = 512,
    queue: Annotated[
        int, typer.Option(min=1, help="Most requests waiting; further ones are answered 429.")
    ] = 512,
    deadline: Annotated[
        float, typer.Option(min=0.1, help="Most seconds to an answer; later ones are 504.")
    ] = 120.0,
    alias: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=MODEL: answer chat clients that ask for NAME as MODEL, as in "
            "gpt-4o=custos/qa. May be repeated."
        ),
    ] = None,
    log_contents: Annotated[
        bool, typer.Option("--log-contents", help="Log what is asked and answered.")
    ] = False,
    engine: Engine = "tree",
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 64,
) -> None:
    """Answer POST /judge with verdicts. GET /judges lists the judges, GET /tasks what they take.

    Example: custos serve --judge qs=runs/qs --port 8000
    """
    from serve.app import create_app
    from serve.limits import Limits
    from serve.queue.service import Service
    from serve.queue.verdict_cache import VerdictCache
    from serve.requests.remote_images import RemoteImages
    from serve.server import bind, read_keys, run, url

    sources = named_sources(judge or served_by_default(), engine)
    aliases = read_aliases(alias or [])
    limits = Limits(queue_requests=queue, deadline_s=deadline)
    keys = read_keys(api_key_file)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # its lines show whole addresses
    service = Service(
        limits=limits,
        cache=VerdictCache(cache, cache_mb * 1_000_000) if cache else None,
        remote_images=RemoteImages(image_host, limits.body_bytes) if image_host else None,
        log_contents=log_contents,
    )
    with bind(host, port, is_guarded=bool(keys) or allow_open) as listener:
        typer.echo(f"serving {', '.join(sources)} at {url(listener)}")
        key = "-H 'Authorization: Bearer KEY' " if keys else ""
        typer.echo(
            f"try: curl -s {url(listener)}/judge {key}-H 'Content-Type: application/json' "
            f"-d {shlex.quote(json.dumps(SAMPLE))}"
        )
        app = create_app(service, keys=keys, aliases=aliases, only_local=not allow_open)

        def open_one(source: str) -> Judge:
            # Two tries and the wait between them fit into the time of those who wait.
            part = deadline / 3
            return judge_on(
                *(engine, source, base_url, api_key(key_env), concurrency, part),
                tries=2,
                longest_wait=part,
            )

        run(app, service, listener, lambda: load(sources, aliases, open_one))


def load(
    sources: Mapping[str, str], aliases: Mapping[str, str], open_one: Callable[[str], Judge]
) -> dict[str, Judge]:
    """Load judges by their names; what several have in common is kept once.

    Args:
        sources: What to load, by the name clients call it.
        aliases: Models that chat clients ask for, to the models that answer.
        open_one: Loads one.

    Raises:
        CustosError: If one cannot be loaded, or an alias does not stand for what they can do.
    """
    from serve.chat import check_aliases
    from serve.shared_weights import share_weights

    judges: dict[str, Judge] = {}
    for name, source in sources.items():
        judges[name] = open_one(source)
        share_weights(judges.values())
    check_aliases(judges, aliases)
    return judges


def read_aliases(given: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=MODEL`` options.

    Raises:
        CustosError: If a name or model is empty, or a name is given twice.
    """
    aliases: dict[str, str] = {}
    for text in given:
        name, _, model = text.partition("=")
        if not name or not model or name in aliases:
            raise CustosError(f"--alias '{text}': expected NAME=MODEL, every name once")
        aliases[name] = model
    return aliases


def served_by_default() -> list[str]:
    """Names of the judges that came with custos.

    Raises:
        CustosError: If there are none.
    """
    names = shipped_judges()
    if not names:
        raise CustosError(
            "no judge came with this installation: name one with --judge NAME=RUN, where RUN is a "
            "run folder, or serve the untrained backbone with --judge embedded"
        )
    return names


def named_sources(given: Iterable[str], engine: str = "tree") -> dict[str, str]:
    """Read ``NAME=RUN`` and ``RUN`` options; a bare one is named after its last path part.

    On a server the name is the model's there, and the option stays whole.

    Raises:
        CustosError: If a name or source is empty, or a name is given twice.
    """
    from clients.remote_judge import remote_source

    sources: dict[str, str] = {}
    for text in given:
        name, separator, source = text.partition("=")
        if not separator:
            name, source = Path(text).name, text
        if engine == "openai":
            (name, _), source = remote_source(text), text
        if not name or not source:
            raise CustosError(f"--judge '{text}': expected NAME=RUN")
        if name in sources:
            raise CustosError(f"--judge '{text}': there is already a judge '{name}'")
        sources[name] = source
    return sources
