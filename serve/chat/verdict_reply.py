"""From a harness's prompt to a request, and from the verdict to the reply that it can read."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from fastapi.concurrency import run_in_threadpool

from judging import JudgeRequest, Verdict
from judging.types import ReferenceMode, score_of
from serve.chat.contract import Contract
from serve.chat.layout import PromptLayout
from serve.chat.messages import ChatRequest
from serve.chat.wire import Ending, Piece, Reply
from serve.errors import ApiError
from serve.queue.service import Service
from serve.requests.checks import checked_requests

PROBES = ("hello", "hi", "ping", "test")
NEUTRAL = str.maketrans("<>", "‹›")
"""A critique may quote a response; nothing in it may look like one of the reply's own tags."""


@dataclass(frozen=True)
class Asked:
    """A prompt, understood."""

    contract: Contract
    layout: PromptLayout
    request: JudgeRequest
    is_json: bool
    prompt: str
    """All that was said, for counting."""


def is_probe(asked: ChatRequest) -> bool:
    """Whether a client only wants to know that somebody answers, as VLMEvalKit does."""
    return len(asked.messages) == 1 and asked.messages[0].text.strip(" .!?").lower() in PROBES


async def greeting(asked: ChatRequest, service: Service, judge: str, model: str) -> Reply:
    """What a probe is told."""
    text = f"Hello, this is {model}."
    yield Piece(text)
    yield await _ending("stop", service, judge, asked.text, text)


def understand(asked: ChatRequest, contract: Contract, service: Service) -> Asked:
    """Cut a prompt into a request and check that.

    Raises:
        ApiError: 422 if it is not one user message whose fields can be told apart, or if the
            request is not one that the task takes.
    """
    if len(asked.turns) != 1 or asked.turns[0].role != "user":
        raise ApiError(
            422,
            "expected one user message with the whole prompt, after system messages",
            "messages",
        )
    layout, fields = contract.read(asked.turns[0].text, asked.system)
    references, reference_mode = _references(layout, fields.get("reference", ""))
    is_pair = "response_a" in fields
    mode: Literal["score", "critique"] = "score"
    if "{critique}" in contract.reply and not asked.wants_json:
        mode = "critique"
    request = JudgeRequest.model_construct(
        task=contract.task,
        variant=layout.variant,
        question=fields["question"],
        references=references,
        reference_mode=reference_mode,
        responses=(
            (fields["response_a"], fields["response_b"]) if is_pair else (fields["response"],)
        ),
        images=asked.turns[0].images,
        mode=mode,
        seed=asked.seed or 0,
    )
    (request,) = checked_requests([request], [""], service.limits, service.remote_images)
    return Asked(contract, layout, request, asked.wants_json, asked.text)


def _references(layout: PromptLayout, text: str) -> tuple[tuple[str, ...], ReferenceMode]:
    for separator, mode in layout.separators.items():
        if separator in text:
            return tuple(part.strip() for part in text.split(separator) if part.strip()), mode
    return (text,) if text else (), layout.reference_mode


async def judged(
    asked: Asked, service: Service, judge: str, *, streamed: bool, deadline: float | None
) -> Reply:
    """Grade a request and give the reply piece by piece, then how it ended.

    Raises:
        ApiError: As ``Service.grade``; 422 or 5xx when there is no label, which is never made up.
    """
    head, _, tail = asked.contract.reply.rpartition("{critique}")
    verdict: Verdict | None = None
    text = ""
    async with aclosing(_events(asked.request, service, judge, streamed, deadline)) as events:
        async for event in events:
            if isinstance(event, Verdict):
                verdict = event
            else:
                piece = Piece(("" if text else head) + event.translate(NEUTRAL))
                text += piece.text
                yield piece
    assert verdict
    for piece in _around_label(asked, verdict, tail if text else head + tail):
        text += piece.text
        yield piece
    reason: Literal["stop", "length"] = "length" if verdict.status == "truncated" else "stop"
    yield await _ending(reason, service, judge, asked.prompt, text)


async def _ending(
    reason: Literal["stop", "length"], service: Service, judge: str, prompt: str, text: str
) -> Ending:
    """The end of a reply. Counting a long prompt takes a second: another thread does it."""
    count = service.token_counters[judge]
    return Ending(reason, *await run_in_threadpool(lambda: (count(prompt), count(text))))


async def _events(
    request: JudgeRequest, service: Service, judge: str, streamed: bool, deadline: float | None
) -> AsyncGenerator[str | Verdict]:
    """Pieces of the critique, then the verdict; only a stream goes past the cache."""
    if streamed and request.mode == "critique":
        async for event in service.stream(request, judge, deadline=deadline):
            yield event
        return
    (verdict,) = await service.grade([request], [judge], deadline=deadline)
    _label(verdict)
    if verdict.critique:
        yield verdict.critique
    yield verdict


def _label(verdict: Verdict) -> str:
    """The label of a verdict.

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


def _around_label(asked: Asked, verdict: Verdict, template: str) -> Iterator[Piece]:
    """The label with its probability, and what stands around it.

    Raises:
        ApiError: If there is no label.
    """
    contract, layout = asked.contract, asked.layout
    word = contract.word(layout, _label(verdict))
    chances: dict[str, float] = {}
    for full, chance in verdict.probabilities.items():
        own = contract.word(layout, score_of(full))
        chances[own] = chances.get(own, 0.0) + chance
    chances = chances or {word: 1.0}
    before, _, after = template.partition("{label}")
    after = after.replace("{confidence}", f"{chances[word]:.2f}")
    shown = word
    if asked.is_json:
        before, after = f"{{{json.dumps(contract.json_key, ensure_ascii=False)}: ", "}"
        shown = word if word.isdecimal() else json.dumps(word, ensure_ascii=False)
    if before:
        yield Piece(before)
    yield Piece(
        shown, {own: math.log(max(chance, 1e-300)) for own, chance in chances.items()}, word
    )
    if after:
        yield Piece(after)
