"""An engine whose model runs on an OpenAI-compatible server: many GPUs, many machines, one URL.

Exact: prompts are made here, token by token as in training, and sent as token ids, so nothing in a
response can become a control token on the way. All slots of the label tree (the prompt's end and
every node) go in one ``POST /completions``; the server answers with the log-probabilities of the
tree's tokens at each (vLLM's ``logprob_token_ids``), which is what the tree engine reads from its
own forward pass. Prompts with pictures go to ``POST /chat/completions``, slot by slot, and count
only if the server rendered the very tokens that the judge was trained on.

Approximate, for other servers: the label is answered in words (:mod:`clients.words`).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field

from clients.chat import ModelServer, ReplyBody, RequestRefused, ServerConnection, ServerRefusal
from clients.messages import Message, content
from clients.words import Token, after, label_masses
from judging.errors import CustosError, RowsFailed, Unparsed
from judging.fingerprint import digest

if TYPE_CHECKING:
    from torch import Tensor

    from judging.scoring.engine import OnTexts
    from judging.scoring.generation import Generated, Sampling
    from judging.scoring.label_tree import LabelTree
    from judging.scoring.prompts import EncodedPrompt, Encoder

TOP_LOGPROBS = 20  # the most that OpenAI gives
WORD_TOKENS = 16
LAST_TAG = re.compile(r"<\w+>$")

T = TypeVar("T")


@dataclass(frozen=True)
class RemoteEngine:
    """Reads label trees and draws texts on a server."""

    server: ModelServer
    tokenizer: Any
    """Of the model there; in an approximate engine any, to give back the text of a prompt."""
    posterior: Literal["exact", "approximate"]
    token_budget: int = 16384
    """Tokens worth handing over at once; the server makes its own batches."""

    @property
    def numerics(self) -> dict[str, str]:
        """An exact engine reads what the tree engine reads: it shares its calibration."""
        if self.posterior == "exact":
            return {"dtype": "bfloat16", "engine": "tree", "positions": "float32"}
        return {"dtype": "unknown", "engine": "words"}

    @property
    def location(self) -> dict[str, str]:
        """The server, not by its address, and the model there."""
        return {"server": digest({"url": self.server.base_url}), "model": self.server.model}

    def score(self, prompts: Sequence[EncodedPrompt], tree: LabelTree) -> Tensor:
        """Log-probability of every label for every prompt, ``[prompts, labels]`` float32.

        Raises:
            RowsFailed: If the server refuses some prompts, or answers with no label.
            CustosError: If the server fails.
        """
        import torch

        if self.posterior == "approximate":
            ask = self._words
        else:
            ask = self._slots
        rows = self._each(prompts, lambda connection, row: ask(connection, prompts[row], tree))
        return torch.tensor(rows).reshape(len(prompts), len(tree.labels))

    def generate(
        self,
        prompts: Sequence[EncodedPrompt],
        encoder: Encoder,
        stop: str,
        seeds: Sequence[int],
        sampling: Sampling,
        on_text: Callable[[int, str], None] | None = None,
        on_texts: OnTexts | None = None,
    ) -> list[Generated]:
        """Draw a text after every prompt, up to ``stop``.

        ``on_text`` gets each whole text, ``on_texts`` all of them at once.

        Raises:
            RowsFailed: If the server refuses some prompts.
            CustosError: If the server fails.
        """

        async def draw(connection: ServerConnection, row: int) -> Generated:
            return await self._draw(connection, prompts[row], stop, seeds[row], sampling)

        texts = self._each(prompts, draw)
        # Only now: whoever listens may ask this engine for scores, which starts an event loop.
        for row, drawn in enumerate(texts):
            if on_text:
                on_text(row, drawn.text)
        if on_texts:
            on_texts(range(len(texts)), texts)
        return texts

    def _each(
        self, prompts: Sequence[Any], ask: Callable[[ServerConnection, int], Awaitable[T]]
    ) -> list[T]:
        """Ask for every prompt.

        Raises:
            RowsFailed: If some rows got no answer; it holds those of the others.
            CustosError: If none got one, and not because they were refused: the server is down.
        """
        answers: dict[int, T] = {}
        errors: dict[int, CustosError] = {}

        async def one(connection: ServerConnection, row: int) -> None:
            try:
                answers[row] = await ask(connection, row)
            except ServerRefusal:
                raise
            except CustosError as error:
                errors[row] = error

        async def every() -> None:
            async with ServerConnection(self.server) as connection, asyncio.TaskGroup() as group:
                for row in range(len(prompts)):
                    group.create_task(one(connection, row))

        try:
            asyncio.run(every())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        faults = [e for e in errors.values() if not isinstance(e, (RequestRefused, Unparsed))]
        if faults and not answers:
            raise faults[0]
        if errors:
            raise RowsFailed(errors, answers)
        return [answers[row] for row in range(len(prompts))]

    async def _slots(
        self, connection: ServerConnection, prompt: EncodedPrompt, tree: LabelTree
    ) -> list[float]:
        nodes = [tree.ancestors(node)[::-1] for node in range(len(tree.node_tokens))]
        paths = [[], *([tree.node_tokens[node] for node in line] for line in nodes)]
        wanted = sorted({token for path in tree.paths for _, token in path})
        settings = {
            **{"model": self.server.model, "max_tokens": 1, "temperature": 0},
            **{"logprob_token_ids": wanted, "return_tokens_as_token_ids": True},
        }
        if prompt.vision:
            asked = (self._picture_slot(connection, prompt, path, settings) for path in paths)
            slots = list(await asyncio.gather(*asked))
        else:
            ids = [*prompt.prefix_ids, *prompt.suffix_ids]
            async with connection.gate:
                body = {"prompt": [[*ids, *path] for path in paths], "logprobs": 1, **settings}
                answer = await connection.post("completions", _json(body), Completions, "prompt")
            slots = [choice.by_token_id() for choice in answer.choices]
        try:
            return [sum(slots[slot][token] for slot, token in path) for path in tree.paths]
        except (IndexError, KeyError):
            raise CustosError(
                f"{self.server.base_url}: the server leaves out log-probabilities asked for"
            ) from None

    async def _picture_slot(
        self,
        connection: ServerConnection,
        prompt: EncodedPrompt,
        path: Sequence[int],
        settings: Mapping[str, Any],
    ) -> dict[int, float]:
        answer = await self._chat(
            connection,
            prompt.extended(path),
            {**settings, "logprobs": True, "return_token_ids": True},
        )
        expected = [*prompt.prefix_ids, *prompt.suffix_ids, *path]
        if answer.prompt_token_ids != expected:
            raise RequestRefused(
                f"the server renders a prompt of {len(answer.prompt_token_ids or ())} tokens, "
                f"other than the {len(expected)} that the judge reads: its chat template or pixel "
                "limits differ, or a text holds control tokens"
            )
        return {_token_id(shown.token): shown.logprob for shown in answer.tokens()[0].top_logprobs}

    async def _draw(
        self,
        connection: ServerConnection,
        prompt: EncodedPrompt,
        stop: str,
        seed: int,
        sampling: Sampling,
    ) -> Generated:
        from judging.scoring.generation import Generated

        settings: dict[str, Any] = {
            **{"model": self.server.model, "max_tokens": sampling.max_new_tokens, "seed": seed},
            **{"temperature": sampling.temperature, "top_p": sampling.top_p, "stop": [stop]},
        }
        if self.posterior == "exact":
            settings["return_token_ids"] = True
        choice: _TextChoice | _ChatChoice
        if self.posterior == "exact" and not prompt.vision:
            async with connection.gate:
                body = {"prompt": [*prompt.prefix_ids, *prompt.suffix_ids], **settings}
                written = await connection.post("completions", _json(body), Completions, "text")
            choice = written.choices[0]
        else:
            choice = (await self._chat(connection, prompt, settings)).choices[0]
        text = choice.said.partition(stop)[0]
        return Generated(tuple(choice.token_ids or ()), text, choice.finish_reason == "stop")

    async def _words(
        self, connection: ServerConnection, prompt: EncodedPrompt, tree: LabelTree
    ) -> list[float]:
        settings = {
            **{"model": self.server.model, "max_tokens": WORD_TOKENS, "temperature": 0},
            **{"logprobs": True, "top_logprobs": TOP_LOGPROBS},
        }
        answer = await self._chat(connection, prompt, settings)
        tokens = [
            Token(
                one.token, one.logprob, {shown.token: shown.logprob for shown in one.top_logprobs}
            )
            for one in answer.tokens()
        ]
        tag = LAST_TAG.search(self.tokenizer.decode(prompt.answer_ids))
        masses = label_masses(after(tokens, tag[0] if tag else ""), tree.labels)
        if not any(masses):
            said = " ".join(answer.choices[0].said.split())
            raise Unparsed(f"the model's answer is none of the labels: '{said:.80}'")
        return [math.log(mass) if mass else -math.inf for mass in masses]

    async def _chat(
        self, connection: ServerConnection, prompt: EncodedPrompt, settings: Mapping[str, Any]
    ) -> ChatAnswer:
        if prompt.turns is None:
            raise RequestRefused("pictures in a free conversation cannot be sent on to this server")
        turns = [
            Message(role="system", text=prompt.turns.instruction),
            Message(role="user", text=prompt.turns.text, images=prompt.turns.images),
        ]
        begun = self.tokenizer.decode(prompt.answer_ids)
        if begun:
            turns.append(Message(role="assistant", text=begun))
        if begun and self.posterior == "exact":
            continued = {"add_generation_prompt": False, "continue_final_message": True}
            settings = {**settings, **continued}
        async with connection.gate:  # a body holds its pictures: only those on their way are made
            messages = [{"role": one.role, "content": content(one)} for one in turns]
            body = _json({"messages": messages, **settings})
            return await connection.post("chat/completions", body, ChatAnswer, "prompt")


class _TextLogprobs(BaseModel):
    top_logprobs: list[dict[str, float]] = []


class _TextChoice(BaseModel):
    text: str
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: _TextLogprobs | None = None

    @property
    def said(self) -> str:
        return self.text

    def by_token_id(self) -> dict[int, float]:
        """Log-probabilities at the one token drawn; empty if the server gave none by id."""
        given = self.logprobs.top_logprobs if self.logprobs else []
        return {_token_id(token): value for token, value in (given[0] if given else {}).items()}


class Completions(ReplyBody):
    """``POST /completions``: one choice per prompt, in order."""

    called: ClassVar[str] = "completion"
    choices: list[_TextChoice] = Field(min_length=1)


class _Shown(BaseModel):
    token: str
    logprob: float


class _ChatToken(_Shown):
    top_logprobs: list[_Shown] = []


class _ChatLogprobs(BaseModel):
    content: list[_ChatToken] | None = None


class _ChatMessage(BaseModel):
    content: str | None = None


class _ChatChoice(BaseModel):
    message: _ChatMessage
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    logprobs: _ChatLogprobs | None = None

    @property
    def said(self) -> str:
        return self.message.content or ""


class ChatAnswer(ReplyBody):
    """``POST /chat/completions`` with log-probabilities."""

    called: ClassVar[str] = "chat completion"
    choices: list[_ChatChoice] = Field(min_length=1)
    prompt_token_ids: list[int] | None = None

    def tokens(self) -> list[_ChatToken]:
        """Tokens drawn, with their alternatives.

        Raises:
            CustosError: If the server gave none.
        """
        given = self.choices[0].logprobs
        if given is None or not given.content:
            raise CustosError("the server gives no log-probabilities; a judge cannot do without")
        return given.content


def _token_id(shown: str) -> int:
    """The id in vLLM's ``token_id:17``; -1 for a token shown as text."""
    prefix, _, number = shown.partition(":")
    return int(number) if prefix == "token_id" and number.isdecimal() else -1


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()
