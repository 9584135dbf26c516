"""``custos serve``: judges over HTTP."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.judges import (
    UNTRAINED,
    EngineOptions,
    default_judges,
    load_default_judges,
    load_named_judges,
    name_gpu,
    named_sources,
)
from cli.shared.options import (
    BaseUrl,
    Concurrency,
    Engine,
    KeyEnv,
    TokenBudget,
    api_key,
    read_assignments,
    with_groups,
)
from cli.shared.outputs import output_folder
from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.notes import KNOWS_NOTHING
from judging.tasks import get_task

logger = logging.getLogger("custos.serve")

MOST = 1_000_000
"""Largest of the numbers and sizes that a service may be given."""
LONGEST_S = 86_400.0
"""Longest of its waits."""
TlsFile = Annotated[
    Path | None,
    typer.Option(
        help="Answer over https with this PEM file, together with the other --tls option. "
        "Default: answer over http."
    ),
]


@with_groups
def serve(
    judges: Annotated[list[str] | None, typer.Option("--judge")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    host: str = "127.0.0.1",
    api_key_file: Path | None = None,
    tls_cert: TlsFile = None,
    tls_key: TlsFile = None,
    allow_open: Annotated[bool, typer.Option("--allow-open")] = False,
    image_hosts: Annotated[list[str] | None, typer.Option("--image-host")] = None,
    cache: Annotated[Path | None, typer.Option(callback=output_folder)] = None,
    cache_mb: Annotated[int, typer.Option(min=1, max=MOST)] = 512,
    share_cache: Annotated[bool, typer.Option("--share-cache")] = False,
    queue: Annotated[int, typer.Option(min=1, max=MOST)] = 512,
    key_rate: Annotated[int | None, typer.Option(min=1, max=MOST)] = None,
    key_share: Annotated[float, typer.Option(min=0.01, max=1)] = 0.5,
    deadline: Annotated[float, typer.Option(min=0.1, max=LONGEST_S)] = 120.0,
    watchdog: Annotated[float, typer.Option(min=0.0, max=LONGEST_S)] = 600.0,
    connections_per_address: Annotated[int, typer.Option(min=1, max=MOST)] = 512,
    metrics_address: str | None = None,
    aliases: Annotated[list[str] | None, typer.Option("--alias")] = None,
    allow_unmeasured: Annotated[
        list[str] | None, typer.Option("--allow-unmeasured", metavar="TASK")
    ] = None,
    log_contents: Annotated[bool, typer.Option("--log-contents")] = False,
    engine: Engine = "tree",
    token_budget: TokenBudget = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    concurrency: Concurrency = 64,
) -> None:
    """Serve judges over HTTP, with a page to try them in a browser.

    Programs send requests to POST /judge and get verdicts. Scripts that ask a chat model can ask
    POST /v1/chat/completions instead. The address and a call to try are printed once the judges are
    loaded.

    Example: custos serve --judge qs=runs/qs --port 8000

    Options:
        judges: Serve this judge: a run folder, a shipped judge, or a backbone for an untrained one.
            NAME=RUN gives it another name. May be repeated. Default: the shipped judges on
            the embedded backbone, and their untrained model for tasks that none of them takes.
        port: Listen on this port; 0 takes a free one.
        host: Listen on this address.
        api_key_file: Read access keys from this file, one on each line: NAME: and the key's
            SHA-256, or the key. A changed file is read again. Default: the environment variable
            CUSTOS_API_KEYS, with commas between the keys.
        allow_open: Let other machines call without a key.
        image_hosts: Fetch pictures from this host over https. May be repeated. Default: from no
            host; pictures come as data URLs.
        cache: Keep verdicts in this folder. Default: none are kept.
        cache_mb: Keep at most this many megabytes of verdicts.
        share_cache: Answer one access key with verdicts that were kept for another.
        queue: Let at most this many requests wait; answer others with an error (429).
        key_rate: Grade at most this many requests of one access key in a minute; answer others with
            an error (429). Default: no limit.
        key_share: Let one access key take at most this share of the queue.
        deadline: Answer with an error (504) what took longer than this many seconds.
        watchdog: End the process, for a supervisor to start it again, if the model makes no
            progress for this many seconds; 0: never.
        connections_per_address: Let at most this many connections come from one address; answer
            others with an error (503). A proxy in front needs as many as all its clients.
        metrics_address: Give the counters of all callers to Prometheus at this HOST:PORT, without a
            key: let only yourself reach it, as at 127.0.0.1:9100. Default: nowhere; GET /metrics
            tells a key its own.
        aliases: NAME=MODEL: let scripts that can ask only for the model NAME get MODEL, as in
            gpt-4o=custos/qa. custos doctor lists the models. May be repeated. Default: none.
        allow_unmeasured: Let every judge here answer this task, such as criterion, though it was
            not trained for it; each verdict then says so. May be repeated. Default: trained judges
            take the tasks of their training, untrained ones all but criterion.
        log_contents: Log the contents of requests and answers.
    """
    from serve.app import create_app
    from serve.calls.limits import Limits
    from serve.chat.models import check_alias_names, check_aliases
    from serve.gate.gate import read_keys
    from serve.pages.routes import headline_example, warm_up
    from serve.pictures.received import RemoteImages
    from serve.queue.cache import VerdictCache
    from serve.queue.service import Service
    from serve.server import TlsFiles, answer_operator, bind, run, start_log, url

    sources = named_sources(judges or default_judges(), engine)
    models = read_assignments(aliases, "--alias", "NAME=MODEL, every name once", once=True)
    start_log()
    keys = read_keys(api_key_file)
    if (tls_cert is None) != (tls_key is None):
        raise CustosError("--tls-cert and --tls-key: give both, or none of them")
    tls = TlsFiles(tls_cert, tls_key) if tls_cert and tls_key else None
    if tls:
        tls.check()
    is_default = not judges and engine == "tree"
    load_judges = load_default_judges if is_default else load_named_judges
    allowed = frozenset(get_task(name).name for name in allow_unmeasured or ())
    check_alias_names([*sources, UNTRAINED] if is_default else sources, models)

    def allow(judge: Judge) -> Judge:
        judge.allowed = allowed
        return judge

    api_key(key_env)  # A missing key is an error now, not once the address is taken.
    # Two tries and the wait between them fit into the time that a client waits.
    wait = deadline / 3
    options = EngineOptions(engine, token_budget, base_url, key_env, concurrency, wait)

    def load(source: str) -> Judge:
        """Load a judge and have it grade once, if its model runs here."""
        judge = allow(options.load_judge(source, tries=2, longest_wait=wait))
        if judge.backbone.has_random_weights:
            logger.warning("%s: %s", source, KNOWS_NOTHING)
        if engine == "tree":
            warm_up(judge)
        return judge

    with bind(host, port, is_guarded=bool(keys) or allow_open) as listener:
        limits = Limits(
            queue_requests=queue,
            key_requests_per_minute=key_rate,
            key_queue_share=key_share,
            deadline_s=deadline,
            stall_s=watchdog,
            address_connections=connections_per_address,
        )
        kept = VerdictCache(cache, cache_mb * 1_000_000) if cache else None
        service = Service(
            limits=limits,
            cache=kept,
            remote_images=RemoteImages(image_hosts, limits.body_bytes) if image_hosts else None,
            share_cache=share_cache,
        )
        app = create_app(
            service, keys=keys, aliases=models, only_local=not allow_open, log_contents=log_contents
        )
        address = url(listener, "https" if tls else "http")
        if metrics_address:
            operator, _, at = metrics_address.rpartition(":")
            if not (operator and at.isascii() and at.isdecimal()):
                raise CustosError(f"--metrics-address '{metrics_address}': expected HOST:PORT")
            for_operator = bind(
                operator.strip("[]"), int(at), is_guarded=True, option="--metrics-address"
            )
            answer_operator(service.metrics, for_operator)
            logger.info("counters of all callers: %s/metrics", url(for_operator))

        def load_all() -> dict[str, Judge]:
            loaded = load_judges(sources, load)
            for judge in loaded.values():  # The untrained one too, which is not loaded by name.
                allow(judge)
            check_aliases(loaded, models)
            if engine == "tree":
                name_gpu(logger.info)
            return loaded

        def announce(judges: Mapping[str, Judge]) -> None:
            """Print where the judges answer, with a call to try."""
            key = "-H 'Authorization: Bearer KEY' " if keys else ""
            try:
                typer.echo(
                    f"serving {', '.join(judges)} at {address}\n"
                    f"try: curl -s {address}/judge {key}-H 'Content-Type: application/json' "
                    f"-d {shlex.quote(json.dumps(headline_example(judges)))}"
                )
            # Nobody reads it, or the disk is full: no reason to serve nobody.
            except OSError as error:
                logger.warning("standard output: %s", error.strerror)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

        logger.info("loading %s; %s answers 503 until then", ", ".join(sources), address)
        run(app, service, listener, load_all, announce, tls, keys)
