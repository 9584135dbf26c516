"""Judges whose models run on an OpenAI-compatible server: many GPUs, many machines, one URL.

Exact: prompts are made here, token by token as in training, and sent as token ids, so nothing in a
response can become a control token on the way. All slots of the label tree (the prompt's end and
every node) go in one ``POST /completions``; the server answers with the log-probabilities of the
tree's tokens at each (vLLM's ``logprob_token_ids``), which is what the tree engine reads from its
own forward pass. Prompts with pictures go to ``POST /chat/completions``, slot by slot, and count
only if the server rendered the very tokens that the judge was trained on.

Approximate, for other servers: the label is answered in words (:func:`label_masses`).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from clients.chat import ChatChoice, ChatCompletion, ChatToken, Completions, TextChoice, token_id
from clients.connection import (
    ModelServer,
    RequestRefused,
    ServerConnection,
    ServerRefusal,
    run_coroutine,
    run_together,
)
from clients.messages import encode_message, one_user_turn
from clients.pool import PoolConnection, ServerPool
from judging.errors import CustosError, Unparsed
from judging.files.pictures import PixelLimits, megapixels
from judging.fingerprint import digest
from judging.judge import Judge
from judging.judge.card import BACKBONES, read_card, run_folder
from judging.log_lines import one_line
from judging.models.backbones import check_version, load_backbone
from judging.models.fetched import EMBEDDED
from judging.models.gguf_files import is_gguf
from judging.scoring.engine import (
    UNWANTED,
    GeneratedText,
    LabelLogprobs,
    Sampling,
    TextBatch,
    Unwanted,
)
from judging.types import END_TOKEN, Message

if TYPE_CHECKING:
    from judging.models.backbones import Backbone
    from judging.scoring.label_tree import LabelTree
    from judging.scoring.prompts import EncodedPrompt, Encoder

PROBE = "The judge reads every token."
TOP_LOGPROBS = 20  # the most that OpenAI gives
WORD_TOKENS = 16
LAST_TAG = re.compile(r"<\w+>$")
DECORATION = " \t\r\n*_`\"'"

ResultT = TypeVar("ResultT")
Connection = ServerConnection | PoolConnection


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
    backbone = load_backbone(name, weights=False, version=card.backbone_version if card else None)
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

    Raises ``CustosError`` if either side is empty.
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
    """Find out whether a server takes token ids and gives the log-probability of any token.

    Raises ``CustosError`` if it does, but its tokens are not the backbone's.
    """
    ids = backbone.tokenizer.encode(PROBE, add_special_tokens=False)
    token_ids = sorted({backbone.tokenizer.convert_tokens_to_ids(END_TOKEN), *ids})
    common = {"model": server.model, "prompt": [ids], "max_tokens": 1, "temperature": 0}
    scored = {"logprobs": 1, "logprob_token_ids": token_ids, "return_tokens_as_token_ids": True}
    async with ServerConnection(replace(server, tries=min(server.tries, 3))) as connection:
        try:
            body = _json({**common, **scored})
            answer = await connection.post("completions", body, Completions, "first prompt")
            if not set(token_ids) <= answer.choices[0].by_token_id().keys():
                return False
            body = _json({**common, "echo": True})
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

    Raises ``CustosError`` if the server gives no log-probability.
    """
    messages = [{"role": "user", "content": PROBE}]
    logprobs = {"max_tokens": 1, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
    body = _json({"model": server.model, "messages": messages, **logprobs})
    async with ServerConnection(replace(server, tries=min(server.tries, 3))) as connection:
        answer = await connection.post("chat/completions", body, ChatCompletion, "first prompt")
        answer.tokens()


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()


@dataclass(frozen=True)
class RemoteEngine:
    """Scores label trees and generates texts on a server."""

    server: ModelServer
    tokenizer: Any
    """Tokenizer of the model there; in an approximate engine the one that made the prompts."""
    posterior: Literal["exact", "approximate"]
    pixels: PixelLimits | None = None
    """Limits on pictures that the server must have; ``None``: those of the model there."""
    token_budget: int = 16384
    """Tokens worth handing over at once; the server makes its own batches."""
    pool: ServerPool | None = None
    """All servers of the model, if there are several; ``server`` is one of them."""

    @property
    def numerics(self) -> dict[str, str]:
        """Name the number formats; if exact those of the tree engine, to share its calibration."""
        if self.posterior == "exact":
            return {"dtype": "bfloat16", "engine": "tree", "positions": "float32"}
        return {"dtype": "unknown", "engine": "words"}

    @property
    def location(self) -> dict[str, str]:
        """Name the model, and give a digest of the server's address, which may be private."""
        return {"server": digest({"url": self._addresses}), "model": self.server.model}

    @property
    def _addresses(self) -> str:
        return self.pool.addresses if self.pool else self.server.base_url

    def score(
        self,
        prompts: Sequence[EncodedPrompt],
        tree: LabelTree,
        is_wanted: Callable[[int], bool] | None = None,
    ) -> list[LabelLogprobs | CustosError]:
        """Compute each label's log-probability after every wanted prompt, or say why there is none.

        Raises ``CustosError`` if the server is down, or refuses the key or the model.
        """
        score = self._score_by_words if self.posterior == "approximate" else self._score_slots
        num_servers = len(self.pool.members) if self.pool else 1
        turns = asyncio.Semaphore(num_servers * self.server.concurrency)

        async def ask(connection: Connection, index: int) -> LabelLogprobs | CustosError:
            async with turns:  # those who wait for a prompt may leave while others are sent
                if is_wanted and not is_wanted(index):
                    return UNWANTED
                return await score(connection, prompts[index], tree)

        return self._ask_each(len(prompts), ask)

    def generate(
        self,
        prompts: Sequence[EncodedPrompt],
        encoder: Encoder,
        stop: str,
        seeds: Sequence[int],
        sampling: Sampling,
        on_text: Callable[[int, str], None] | None = None,
    ) -> Iterator[TextBatch]:
        """Generate a text after every prompt and yield all of them in one batch.

        Arguments and errors are those of :meth:`score` and :meth:`Engine.generate`; ``on_text``
        gets each text as a whole.
        """

        async def ask(connection: Connection, index: int) -> GeneratedText:
            prompt = prompts[index]
            settings: dict[str, Any] = {
                **{"max_tokens": sampling.max_new_tokens, "seed": seeds[index], "stop": [stop]},
                **{"temperature": sampling.temperature, "top_p": sampling.top_p},
            }
            if self.posterior == "exact":
                settings["return_token_ids"] = True
            choice: TextChoice | ChatChoice
            if self.posterior == "exact" and not prompt.vision:
                body = {"prompt": [*prompt.prefix_ids, *prompt.suffix_ids], **settings}
                choice = (await self._complete(connection, body)).choices[0]
            else:
                choice = (await self._chat(connection, prompt, settings)).choices[0]
            text = choice.text.partition(stop)[0]
            is_whole = choice.finish_reason == "stop"
            return GeneratedText(tuple(choice.token_ids or ()), text, is_whole)

        texts = self._ask_each(len(prompts), ask)
        # Only now: ``on_text`` may ask this engine for scores, which starts an event loop.
        for index, text in enumerate(texts):
            if on_text and isinstance(text, GeneratedText):
                with suppress(Unwanted):
                    on_text(index, text.text)
        yield TextBatch(self, range(len(texts)), texts)

    def _ask_each(
        self, count: int, ask: Callable[[Connection, int], Awaitable[ResultT]]
    ) -> list[ResultT | CustosError]:
        """Return the result for every prompt, or why there is none.

        Raises ``CustosError`` if no prompt has a result, unless the server refused them all.
        """

        async def ask_one(connection: Connection, index: int) -> ResultT | CustosError:
            try:
                return await ask(connection, index)
            except ServerRefusal:
                raise
            except CustosError as error:
                return error

        async def ask_all() -> list[ResultT | CustosError]:
            opened = PoolConnection(self.pool) if self.pool else ServerConnection(self.server)
            async with opened as connection:
                return await run_together(ask_one(connection, index) for index in range(count))

        results = run_coroutine(ask_all())
        sent = [result for result in results if result is not UNWANTED]
        errors = [result for result in sent if isinstance(result, CustosError)]
        faults = [e for e in errors if not isinstance(e, (RequestRefused, Unparsed))]
        if faults and len(errors) == len(sent):
            raise faults[0]
        return results

    async def _score_slots(
        self, connection: Connection, prompt: EncodedPrompt, tree: LabelTree
    ) -> LabelLogprobs:
        nodes = [tree.ancestors(node)[::-1] for node in range(len(tree.node_tokens))]
        paths = [[], *([tree.node_tokens[node] for node in line] for line in nodes)]
        token_ids = sorted({token for path in tree.paths for _, token in path})
        settings = {
            **{"max_tokens": 1, "temperature": 0},
            **{"logprob_token_ids": token_ids, "return_tokens_as_token_ids": True},
        }
        if prompt.vision:
            slots = await asyncio.gather(
                *(self._score_picture_slot(connection, prompt, path, settings) for path in paths)
            )
        else:
            ids = [*prompt.prefix_ids, *prompt.suffix_ids]
            body = {"prompt": [[*ids, *path] for path in paths], "logprobs": 1, **settings}
            reply = await self._complete(connection, body)
            slots = [choice.by_token_id() for choice in reply.choices]
        try:
            return [sum(slots[slot][token] for slot, token in path) for path in tree.paths]
        except (IndexError, KeyError):
            raise CustosError(
                f"{self._addresses}: the server leaves out log-probabilities asked for"
            ) from None

    async def _score_picture_slot(
        self,
        connection: Connection,
        prompt: EncodedPrompt,
        path: Sequence[int],
        settings: Mapping[str, Any],
    ) -> dict[int, float]:
        settings = {**settings, "logprobs": True, "return_token_ids": True}
        reply = await self._chat(connection, prompt.extended(path), settings)
        expected = [*prompt.prefix_ids, *prompt.suffix_ids, *path]
        if reply.prompt_token_ids != expected:
            size = dict(zip(("shortest_edge", "longest_edge"), self.pixels or (), strict=False))
            raise RequestRefused(
                f"the server renders a prompt of {len(reply.prompt_token_ids or ())} tokens, "
                f"other than the {len(expected)} that the judge reads: its pixel limits or chat "
                "template differ, or a text holds control tokens; start vLLM with "
                f"--mm-processor-kwargs '{json.dumps({'size': size})}'"
            )
        return {token_id(top.token): top.logprob for top in reply.tokens()[0].top_logprobs}

    async def _score_by_words(
        self, connection: Connection, prompt: EncodedPrompt, tree: LabelTree
    ) -> LabelLogprobs:
        settings = {
            **{"max_tokens": WORD_TOKENS, "temperature": 0},
            **{"logprobs": True, "top_logprobs": TOP_LOGPROBS},
        }
        reply = await self._chat(connection, prompt, settings)
        tag = LAST_TAG.search(self.tokenizer.decode(prompt.answer_ids))
        tokens = tokens_after(reply.tokens(), tag[0] if tag else "")
        masses = label_masses(tokens, tree.labels)
        if not any(masses):
            answer = one_line(" ".join(reply.choices[0].text.split())[:80])
            raise Unparsed(f"the model's answer is none of the labels: '{answer}'")
        return [math.log(mass) if mass else -math.inf for mass in masses]

    async def _complete(self, connection: Connection, body: Mapping[str, Any]) -> Completions:
        async with connection.gate:
            content = _json({"model": self.server.model, **body})
            return await connection.post("completions", content, Completions, "prompt")

    async def _chat(
        self, connection: Connection, prompt: EncodedPrompt, settings: Mapping[str, Any]
    ) -> ChatCompletion:
        if not prompt.messages:
            raise RequestRefused("pictures in a free conversation cannot be sent on to this server")
        is_exact = self.posterior == "exact"
        if prompt.vision and self.pixels and not is_exact:
            raise RequestRefused(
                "the server does not say how far it scales pictures down, and this judge knows "
                f"them at up to {megapixels(self.pixels.max_pixels)}; serve it with vLLM or "
                "with 'custos serve'"
            )
        messages = list(prompt.messages if is_exact else one_user_turn(prompt.messages))
        if answer_start := self.tokenizer.decode(prompt.answer_ids):
            messages.append(Message(role="assistant", text=answer_start))
            if is_exact:
                continued = {"add_generation_prompt": False, "continue_final_message": True}
                settings = {**settings, **continued}
        async with connection.gate:  # a body holds its pictures: make only those about to be sent
            turns = [encode_message(message) for message in messages]
            body = _json({"model": self.server.model, "messages": turns, **settings})
            return await connection.post("chat/completions", body, ChatCompletion, "prompt")


def label_masses(tokens: Sequence[ChatToken], labels: Sequence[str]) -> list[float]:
    """Return the probability that an answer begins with each label, as far as tokens show it.

    A server gives only a few alternatives per token, so the probability of a label is a lower
    bound: approximate, unlike that of a label tree. An alternative that fits several labels counts
    for each in equal parts. All are zero if no text of the greedy answer begins with a label.
    """
    masses = dict.fromkeys(labels, 0.0)
    longest = max(map(len, labels)) + 1  # of a text, what decides which labels it fits
    text, logprob = "", 0.0

    def add(start: str, start_logprob: float) -> None:
        fitting = [label for label in labels if _fits(label, start)]
        for label in fitting:
            masses[label] += math.exp(start_logprob) / len(fitting)

    for token in tokens:
        alternatives = {other.token: other.logprob for other in token.top_logprobs}
        for other_text, other_logprob in alternatives.items():
            if other_text != token.token and (text + other_text).strip(DECORATION):
                add(text + other_text, logprob + other_logprob)
        text = (text + token.token).lstrip(DECORATION)[:longest]
        logprob += token.logprob
        if text.strip(DECORATION) and not any(_fits(label, text) for label in labels):
            return [0.0] * len(labels)
    if text.strip(DECORATION):
        add(text, logprob)
    return list(masses.values())


def tokens_after(tokens: Sequence[ChatToken], opening: str) -> Sequence[ChatToken]:
    """Return the tokens after a text that an answer repeats, or all if it does not."""
    text = ""
    for index, token in enumerate(tokens if opening else ()):
        text = text[-len(opening) :] + token.token
        if opening in text:
            return tokens[index + 1 :]
    return tokens


def _fits(label: str, text: str) -> bool:
    """Tell whether a text is the start of a label, or the label with no further letter.

    The case matters only for a single letter, such as A, which may be an article.
    """
    text = text.lstrip(DECORATION)
    if len(label) > 1:
        label, text = label.lower(), text.lower()
    if label.startswith(text):
        return True
    return text.startswith(label) and not text[len(label)].isalnum()
