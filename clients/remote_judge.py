"""Judges whose models run on an OpenAI-compatible server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clients.completions import ChatCompletion, Completions
from clients.connection import ModelServer, RequestRefused, ServerConnection, ServerRefusal
from clients.event_loop import run_coroutine
from clients.remote_engine import TOP_LOGPROBS, RemoteEngine
from clients.server_pool import ServerPool
from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import BACKBONES, read_card, run_folder
from judging.messages import END_TOKEN
from judging.models.backbones import check_version, load_backbone
from judging.models.embedded import EMBEDDED
from judging.models.gguf_files import is_gguf

if TYPE_CHECKING:
    from judging.models.backbones import Backbone

PROBE = "The judge reads every token."


def remote_judge(
    server: ModelServer, source: str | None = None, copies: Sequence[str] = ()
) -> Judge:
    """Make a judge whose model runs on a server, or on several alike.

    Args:
        server: The server, and the model to ask there: a LoRA module by its name, or a base model.
        source: Run folder or shipped judge that the model is, or its backbone for a zero-shot
            judge. ``None`` for a model that is not here: its posterior is approximate.
        copies: Addresses of further servers of the same model.

    Raises:
        ServerRefusal: If a server refuses the key or has no such model.
        CustosError: If the run or backbone cannot be read, or is not what the servers have, or a
            server does not answer.
    """
    folder = run_folder(source) if source else None
    card = read_card(folder) if folder else None
    name = card.backbone if card else source or EMBEDDED
    version = card.backbone_version if card else None
    backbone = load_backbone(name, weights=False, version=version)
    servers = [server, *(replace(server, base_url=url) for url in copies)]
    exact = [
        each for each in servers if source and run_coroutine(_gives_any_logprob(each, backbone))
    ]
    approximate = [each for each in servers if each not in exact]
    for each in approximate:
        run_coroutine(_check_chat(each))
    if exact and approximate:
        raise CustosError(
            f"{exact[0].base_url} gives the log-probability of any token and "
            f"{approximate[0].base_url} does not: their verdicts would differ"
        )
    if folder and card:
        check_version(folder, card.backbone, card.backbone_version, backbone.version)
    backbone = card.with_pixels(backbone) if card else backbone.with_pixels()
    engine = RemoteEngine(
        server,
        backbone.tokenizer,
        "exact" if exact else "approximate",
        backbone.pixels if source else None,
        pool=ServerPool(servers) if copies else None,
    )
    if folder and card:
        judge = Judge.of_run(folder, card, backbone, engine)
        judge.name = server.model
        return judge
    return Judge(server.model, replace(backbone, name=source or server.model), engine)


def remote_source(text: str) -> tuple[str, str | None]:
    """Split ``MODEL=SOURCE`` or ``MODEL`` into the model to ask for and its source here, if any.

    Raises:
        CustosError: If either side is empty.
    """
    model, separator, source = text.partition("=")
    if not model or (separator and not source):
        raise CustosError(f"--judge '{text}': expected MODEL=SOURCE or MODEL")
    if separator:
        return model, source
    if folder := run_folder(text):
        return folder.name, text
    is_here = text in BACKBONES or is_gguf(text) or Path(text).is_dir()
    return text, text if is_here else None


async def _gives_any_logprob(server: ModelServer, backbone: Backbone) -> bool:
    """Return whether a server takes token ids and gives the log-probability of any token.

    Raises:
        CustosError: If it does, but its tokens are not the backbone's.
    """
    ids = backbone.tokenizer.encode(PROBE, add_special_tokens=False)
    token_ids = sorted({backbone.tokenizer.convert_tokens_to_ids(END_TOKEN), *ids})
    common = {"model": server.model, "prompt": [ids], "max_tokens": 1, "temperature": 0}
    scored = {"logprobs": 1, "logprob_token_ids": token_ids, "return_tokens_as_token_ids": True}
    async with ServerConnection(replace(server, tries=min(server.tries, 3))) as connection:
        try:
            body = json.dumps(common | scored).encode()
            answer = await connection.post("completions", body, Completions, "first prompt")
            if not set(token_ids) <= answer.choices[0].by_token_id().keys():
                return False
            body = json.dumps(common | {"echo": True}).encode()
            echoed = await connection.post("completions", body, Completions, "first prompt")
        except (RequestRefused, ServerRefusal):
            return False
    if not echoed.choices[0].text.startswith(PROBE):
        raise CustosError(
            f"{server.base_url}: model '{server.model}' has other tokens than {backbone.name}; "
            "name the backbone or run that it is: --judge MODEL=SOURCE"
        )
    return True


async def _check_chat(server: ModelServer) -> None:
    """Ask a server for one word and its log-probability.

    Raises:
        CustosError: If the server gives no log-probability.
    """
    body = {
        **{"model": server.model, "messages": [{"role": "user", "content": PROBE}]},
        **{"max_tokens": 1, "logprobs": True, "top_logprobs": TOP_LOGPROBS},
    }
    async with ServerConnection(replace(server, tries=min(server.tries, 3))) as connection:
        answer = await connection.post(
            "chat/completions", json.dumps(body).encode(), ChatCompletion, "first prompt"
        )
        answer.tokens()
