"""Verdicts for benchmark scripts: from a prompt to a request, from its verdict to a reply."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from judging import CustosError, JudgeRequest, Verdict
from judging.types import ReferenceMode, score_of
from serve.chat.contract import Contract
from serve.chat.layout import PromptLayout
from serve.chat.messages import ChatRequest
from serve.chat.wire import Ending, Piece, Reply
from serve.errors import ApiError
from serve.queue.deadline import Deadline
from serve.queue.service import Service
from serve.requests.checks import check_request, refusal

PROBES = ("hello", "hi", "ping", "test")
NEUTRAL = str.maketrans("<>", "‹›")
"""A critique may quote a response, so nothing in it may look like a tag of the reply."""


@dataclass(frozen=True)
class ScriptPrompt:
    """A prompt of a benchmark script, and what it asks."""

    contract: Contract
    layout: PromptLayout
    request: JudgeRequest
    wants_json: bool
    """The reply is to be a JSON object."""
    text: str
    """The text of all messages, to count its tokens."""

    @property
    def shows_critique(self) -> bool:
        """Return whether the reply holds the critique."""
        return _shows_critique(self.contract, wants_json=self.wants_json)


def is_probe(chat: ChatRequest) -> bool:
    """Return whether a client only asks if anybody answers, as VLMEvalKit does."""
    return len(chat.messages) == 1 and chat.messages[0].text.strip(" .!?").lower() in PROBES


async def greeting(chat: ChatRequest, service: Service, judge: str, model: str) -> Reply:
    """Yield the reply to a probe."""
    text = f"Hello, this is {model}."
    yield Piece(text)
    yield await _ending("stop", service, judge, chat.text, text)


def read_prompt(
    chat: ChatRequest,
    contract: Contract,
    service: Service,
    judge: str,
) -> ScriptPrompt:
    """Cut a prompt into the fields of a request, as a judge takes it, and check the request.

    Its pictures are left as they are.

    Raises:
        ApiError: 422 if it is not one user message whose fields can be told apart, or if the
            request is not one that the task takes.
    """
    if len(chat.turns) != 1 or chat.turns[0].role != "user":
        raise ApiError(
            422,
            "expected one user message with the whole prompt, after system messages",
            "messages",
        )
    layout, fields = contract.read(chat.turns[0].text, chat.system)
    references, reference_mode = _references(layout, fields.get("reference", ""))
    is_pair = "response_a" in fields
    request = JudgeRequest.model_construct(
        task=contract.task,
        variant=layout.variant,
        question=fields["question"],
        references=references,
        reference_mode=reference_mode,
        responses=(
            (fields["response_a"], fields["response_b"]) if is_pair else (fields["response"],)
        ),
        reasoning="keep" if chat.reasoning == "keep" else "drop",
        images=chat.turns[0].images,
        mode="critique" if _shows_critique(contract, wants_json=chat.wants_json) else None,
        seed=chat.seed or 0,
    )
    try:
        request = service.judges[judge].resolve(request)
    except CustosError as error:
        raise refusal(error) from None
    check_request(request, "", service.limits)
    return ScriptPrompt(contract, layout, request, chat.wants_json, chat.text)


def _shows_critique(contract: Contract, *, wants_json: bool) -> bool:
    return "{critique}" in contract.reply and not wants_json


def _references(layout: PromptLayout, text: str) -> tuple[tuple[str, ...], ReferenceMode]:
    for separator, mode in layout.separators.items():
        if separator in text:
            return tuple(part.strip() for part in text.split(separator) if part.strip()), mode
    return (text,) if text else (), layout.reference_mode


async def verdict_reply(
    prompt: ScriptPrompt, service: Service, judge: str, *, streamed: bool, deadline: Deadline
) -> Reply:
    """Grade a request, and yield the reply piece by piece, then how it ended.

    Raises:
        ApiError: As ``Service.grade``; 422 or 5xx if there is no label, as none is made up.
    """
    head, _, tail = prompt.contract.reply.rpartition("{critique}")
    verdict: Verdict | None = None
    text = ""
    async with aclosing(_parts(prompt, service, judge, streamed, deadline)) as parts:
        async for part in parts:
            if isinstance(part, Verdict):
                verdict = part
            else:
                piece = Piece(("" if text else head) + part.translate(NEUTRAL))
                text += piece.text
                yield piece
    assert verdict
    for piece in _around_label(prompt, verdict, tail if text else head + tail):
        text += piece.text
        yield piece
    reason: Literal["stop", "length"] = "length" if verdict.status == "truncated" else "stop"
    async with deadline.within():
        ending = await _ending(reason, service, judge, prompt.text, text)
    yield ending


async def _ending(
    reason: Literal["stop", "length"], service: Service, judge: str, prompt: str, text: str
) -> Ending:
    """Return the end of a reply, with its tokens counted."""
    count = service.token_counters[judge]
    tokens = await service.readers.read(
        len(prompt) + len(text), lambda: (count(prompt), count(text))
    )
    return Ending(reason, *tokens)


async def _parts(
    prompt: ScriptPrompt, service: Service, judge: str, streamed: bool, deadline: Deadline
) -> AsyncGenerator[str | Verdict]:
    """Yield pieces of the critique, then the verdict; only a stream does not use the cache."""
    if streamed and prompt.shows_critique:
        async for part in service.stream(prompt.request, judge, deadline=deadline):
            yield part
        return
    (verdict,) = await service.grade([prompt.request], [judge], deadline=deadline)
    _label(verdict)
    if verdict.critique and prompt.shows_critique:
        yield verdict.critique
    yield verdict


def _label(verdict: Verdict) -> str:
    """Return the label of a verdict.

    Raises:
        ApiError: If it has none.
    """
    if verdict.label is not None:
        return verdict.label
    message = verdict.message or verdict.status
    if verdict.status in ("not_judgeable", "abstain"):
        raise ApiError(422, f"no verdict: {message}", "messages")
    if fault := verdict.field_error:
        raise ApiError(422, f"{fault.field}: {fault.message}", "messages")
    raise ApiError(502 if verdict.status == "unparsed" else 500, f"no verdict: {message}")


def _around_label(prompt: ScriptPrompt, verdict: Verdict, template: str) -> Iterator[Piece]:
    """Yield the label with its probability, and the text around it.

    Raises:
        ApiError: If there is no label.
    """
    contract, layout = prompt.contract, prompt.layout
    word = contract.word(layout, _label(verdict))
    probabilities: dict[str, float] = {}
    for full_label, probability in verdict.probabilities.items():
        label_word = contract.word(layout, score_of(full_label))
        probabilities[label_word] = probabilities.get(label_word, 0.0) + probability
    probabilities = probabilities or {word: 1.0}
    before, _, after = template.partition("{label}")
    after = after.replace("{confidence}", f"{probabilities[word]:.2f}")
    text = word
    if prompt.wants_json:
        before, after = f"{{{json.dumps(contract.json_key, ensure_ascii=False)}: ", "}"
        text = word if word.isdecimal() else json.dumps(word, ensure_ascii=False)
    if before:
        yield Piece(before)
    logprobs = {name: math.log(max(value, 1e-300)) for name, value in probabilities.items()}
    yield Piece(text, logprobs, word)
    if after:
        yield Piece(after)
