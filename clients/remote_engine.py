"""An engine whose model runs on an OpenAI-compatible server: many GPUs, many machines, one URL.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from clients.completions import ChatChoice, ChatCompletion, Completions, TextChoice, token_id
from clients.connection import ModelServer, RequestRefused, ServerConnection, ServerRefusal
from clients.event_loop import run_coroutine
from clients.messages import encode_message, one_user_turn
from clients.server_pool import PoolConnection, ServerPool
from judging.errors import CustosError, Unparsed
from judging.files.pictures import PixelLimits, megapixels
from judging.fingerprint import digest
from judging.log_lines import one_line
from judging.messages import Message
from judging.scoring.engine import (
    UNWANTED,
    GeneratedText,
    LabelLogprobs,
    Sampling,
    TextBatch,
)

if TYPE_CHECKING:
    from judging.scoring.label_tree import LabelTree
    from judging.scoring.prompts import EncodedPrompt, Encoder

TOP_LOGPROBS = 20  # the most that OpenAI gives
WORD_TOKENS = 16
LAST_TAG = re.compile(r"<\w+>$")
DECORATION = " \t\r\n*_`\"'"

ResultT = TypeVar("ResultT")
Connection = ServerConnection | PoolConnection


@dataclass(frozen=True)
class RemoteEngine:
    """Scores label trees and generates texts on a server."""

    server: ModelServer
    tokenizer: Any
    """Tokenizer of the model there; in an approximate engine the one that made the prompts."""
    posterior: Literal["exact", "approximate"]
    pixels: PixelLimits | None = None
    """Limits on pictures that the server must have; ``None``: those of the model there, whatever
    they are."""
    token_budget: int = 16384
    """Tokens worth handing over at once; the server makes its own batches."""
    pool: ServerPool | None = None
    """All servers of the model, if there are several; ``server`` is one of them."""

    @property
    def numerics(self) -> dict[str, str]:
        """Return those of the tree engine if exact, so that both share one calibration."""
        if self.posterior == "exact":
            return {"dtype": "bfloat16", "engine": "tree", "positions": "float32"}
        return {"dtype": "unknown", "engine": "words"}

    @property
    def location(self) -> dict[str, str]:
        """Return the model and a digest of the server's address, which may be private."""
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
        """Score every label after every prompt that is still wanted.

        Returns:
            For each prompt ``[labels]`` log-probabilities, or an error if the server refuses it,
            does not answer, or answers with no label.

        Raises:
            CustosError: If the server is down, or refuses the key or the model.
        """
        score = self._score_by_words if self.posterior == "approximate" else self._score_slots

        async def ask(connection: Connection, index: int) -> LabelLogprobs | CustosError:
            if is_wanted and not is_wanted(index):
                return UNWANTED
            return await score(connection, prompts[index], tree)

        return self._ask_each(prompts, ask)

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

        Arguments as for :meth:`Engine.generate`; ``on_text`` gets each text as a whole.

        Raises:
            CustosError: If the server is down, or refuses the key or the model.
        """

        async def ask(connection: Connection, index: int) -> GeneratedText:
            return await self._generate(connection, prompts[index], stop, seeds[index], sampling)

        texts = self._ask_each(prompts, ask)
        # Only now: ``on_text`` may ask this engine for scores, which starts an event loop.
        for index, text in enumerate(texts):
            if on_text and isinstance(text, GeneratedText):
                on_text(index, text.text)
        yield TextBatch(self, range(len(texts)), texts)

    def _ask_each(
        self,
        prompts: Sequence[Any],
        ask: Callable[[Connection, int], Awaitable[ResultT]],
    ) -> list[ResultT | CustosError]:
        """Return the result for every prompt, or why there is none.

        Raises:
            CustosError: If no prompt that was sent has a result, and the server did not refuse them
                all.
        """
        results: dict[int, ResultT | CustosError] = {}

        async def ask_one(connection: Connection, index: int) -> None:
            try:
                results[index] = await ask(connection, index)
            except ServerRefusal:
                raise
            except CustosError as error:
                results[index] = error

        async def ask_all() -> None:
            opened = PoolConnection(self.pool) if self.pool else ServerConnection(self.server)
            async with opened as connection, asyncio.TaskGroup() as group:
                for index in range(len(prompts)):
                    group.create_task(ask_one(connection, index))

        try:
            run_coroutine(ask_all())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        sent = [result for result in results.values() if result is not UNWANTED]
        errors = [result for result in sent if isinstance(result, CustosError)]
        faults = [e for e in errors if not isinstance(e, (RequestRefused, Unparsed))]
        if faults and len(errors) == len(sent):
            raise faults[0]
        return [results[index] for index in range(len(prompts))]

    async def _score_slots(
        self, connection: Connection, prompt: EncodedPrompt, tree: LabelTree
    ) -> LabelLogprobs:
        nodes = [tree.ancestors(node)[::-1] for node in range(len(tree.node_tokens))]
        paths = [[], *([tree.node_tokens[node] for node in line] for line in nodes)]
        token_ids = sorted({token for path in tree.paths for _, token in path})
        settings = {
            **{"model": self.server.model, "max_tokens": 1, "temperature": 0},
            **{"logprob_token_ids": token_ids, "return_tokens_as_token_ids": True},
        }
        if prompt.vision:
            slots = await asyncio.gather(
                *(self._score_picture_slot(connection, prompt, path, settings) for path in paths)
            )
        else:
            ids = [*prompt.prefix_ids, *prompt.suffix_ids]
            async with connection.gate:
                body = {"prompt": [[*ids, *path] for path in paths], "logprobs": 1, **settings}
                reply = await connection.post("completions", _json(body), Completions, "prompt")
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
        reply = await self._chat(
            connection,
            prompt.extended(path),
            {**settings, "logprobs": True, "return_token_ids": True},
        )
        expected = [*prompt.prefix_ids, *prompt.suffix_ids, *path]
        if reply.prompt_token_ids != expected:
            raise RequestRefused(
                f"the server renders a prompt of {len(reply.prompt_token_ids or ())} tokens, "
                f"other than the {len(expected)} that the judge reads: its pixel limits or chat "
                "template differ, or a text holds control tokens; start vLLM with "
                f"{_pixel_option(self.pixels)}"
            )
        return {token_id(top.token): top.logprob for top in reply.tokens()[0].top_logprobs}

    async def _generate(
        self,
        connection: Connection,
        prompt: EncodedPrompt,
        stop: str,
        seed: int,
        sampling: Sampling,
    ) -> GeneratedText:
        settings: dict[str, Any] = {
            **{"model": self.server.model, "max_tokens": sampling.max_new_tokens, "seed": seed},
            **{"temperature": sampling.temperature, "top_p": sampling.top_p, "stop": [stop]},
        }
        if self.posterior == "exact":
            settings["return_token_ids"] = True
        choice: TextChoice | ChatChoice
        if self.posterior == "exact" and not prompt.vision:
            async with connection.gate:
                body = {"prompt": [*prompt.prefix_ids, *prompt.suffix_ids], **settings}
                reply = await connection.post("completions", _json(body), Completions, "text")
            choice = reply.choices[0]
        else:
            choice = (await self._chat(connection, prompt, settings)).choices[0]
        text = choice.text.partition(stop)[0]
        return GeneratedText(tuple(choice.token_ids or ()), text, choice.finish_reason == "stop")

    async def _score_by_words(
        self, connection: Connection, prompt: EncodedPrompt, tree: LabelTree
    ) -> LabelLogprobs:
        settings = {
            **{"model": self.server.model, "max_tokens": WORD_TOKENS, "temperature": 0},
            **{"logprobs": True, "top_logprobs": TOP_LOGPROBS},
        }
        reply = await self._chat(connection, prompt, settings)
        tokens = [
            Token(drawn.token, drawn.logprob, {t.token: t.logprob for t in drawn.top_logprobs})
            for drawn in reply.tokens()
        ]
        tag = LAST_TAG.search(self.tokenizer.decode(prompt.answer_ids))
        masses = label_masses(tokens_after(tokens, tag[0] if tag else ""), tree.labels)
        if not any(masses):
            answer = one_line(" ".join(reply.choices[0].text.split())[:80])
            raise Unparsed(f"the model's answer is none of the labels: '{answer}'")
        return [math.log(mass) if mass else -math.inf for mass in masses]

    async def _chat(
        self, connection: Connection, prompt: EncodedPrompt, settings: Mapping[str, Any]
    ) -> ChatCompletion:
        if not prompt.messages:
            raise RequestRefused("pictures in a free conversation cannot be sent on to this server")
        if prompt.vision and self.pixels and self.posterior == "approximate":
            raise RequestRefused(
                "the server does not say how far it scales pictures down, and this judge knows "
                f"them at up to {megapixels(self.pixels.max_pixels)}; serve it with vLLM or "
                "with 'custos serve'"
            )
        is_exact = self.posterior == "exact"
        messages = list(prompt.messages if is_exact else one_user_turn(prompt.messages))
        answer_start = self.tokenizer.decode(prompt.answer_ids)
        if answer_start:
            messages.append(Message(role="assistant", text=answer_start))
            if is_exact:
                continued = {"add_generation_prompt": False, "continue_final_message": True}
                settings = {**settings, **continued}
        async with connection.gate:  # a body holds its pictures: make only those about to be sent
            body = _json(
                {"messages": [encode_message(message) for message in messages], **settings}
            )
            return await connection.post("chat/completions", body, ChatCompletion, "prompt")


def _pixel_option(pixels: PixelLimits | None) -> str:
    """Return the option that gives vLLM the pixel limits of a judge."""
    size = dict(zip(("shortest_edge", "longest_edge"), pixels or (), strict=False))
    return f"--mm-processor-kwargs '{json.dumps({'size': size})}'"


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()


@dataclass(frozen=True)
class Token:
    """One token of an answer."""

    text: str
    logprob: float
    alternatives: Mapping[str, float]
    """Log-probability of the likeliest tokens in this place, by their text; this one may be among
    them or not."""


def label_masses(tokens: Sequence[Token], labels: Sequence[str]) -> list[float]:
    """Return the probability that an answer begins with each label, as far as tokens show it.

    A server gives only a few alternatives per token, so the probability of a label is a lower
    bound: approximate, unlike that of a label tree. An alternative that fits several labels counts
    for each in equal parts.

    Args:
        tokens: The answer, decoded greedily.
        labels: Labels to look for.

    Returns:
        One probability per label; all zero if no text begins with a label.
    """
    masses = dict.fromkeys(labels, 0.0)
    text, logprob = "", 0.0

    def add(start: str, start_logprob: float) -> None:
        fitting = [label for label in labels if _fits(label, start)]
        for label in fitting:
            masses[label] += math.exp(start_logprob) / len(fitting)

    for token in tokens:
        for other_text, other_logprob in token.alternatives.items():
            if other_text != token.text and (text + other_text).strip(DECORATION):
                add(text + other_text, logprob + other_logprob)
        text, logprob = text + token.text, logprob + token.logprob
        if text.strip(DECORATION) and not any(_fits(label, text) for label in labels):
            return list(masses.values())
    if text.strip(DECORATION):
        add(text, logprob)
    return list(masses.values())


def tokens_after(tokens: Sequence[Token], opening: str) -> Sequence[Token]:
    """Return the tokens after a text that an answer repeats, or all if it does not."""
    text = ""
    for index, token in enumerate(tokens):
        text += token.text
        if opening and opening in text:
            return tokens[index + 1 :]
    return tokens


def _fits(label: str, text: str) -> bool:
    """Return whether a text is the start of a label, or the label with no further letter."""
    text = text.lstrip(DECORATION)
    if label.startswith(text):
        return True
    return text.startswith(label) and not text[len(label)].isalnum()
