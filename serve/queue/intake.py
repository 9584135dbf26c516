"""From a checked request to a job: expensive work is done or refused before queueing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clients.connection import run_together
from judging import JudgeRequest, Verdict
from judging.errors import FieldError
from judging.files.pictures import MOST_PIXELS, PictureSize
from judging.judge import Judge
from judging.scoring.prompts import longest_field
from judging.tasks import get_task
from serve.calls.context import call_bytes, caller_name, request_id, require_open
from serve.calls.waiting import Readers
from serve.pictures.received import Decoders
from serve.queue.worker import ModelJob

TokenCounter = Callable[[str], int]
"""Counts the tokens of a text; any thread may call it."""
BYTES_PER_TOKEN = 4
"""About as many as English text has."""
FRAME_TOKENS = 40
"""Tokens of turn markers, headings and the label tree."""
TURN_S = 0.25
"""Seconds of counting the tokens of one call after which other calls have their turn."""
MOST_SENT_PIXELS = 2 * MOST_PIXELS
"""Most pixels of a picture that is sent to a model whose own limit is not known. Chat models scale
larger ones down."""


@dataclass(frozen=True)
class CheckedRequest:
    """A request as its judge takes it: resolved, within all limits, its pictures measured."""

    request: JudgeRequest
    """Its pictures are data URLs."""
    name: str
    """Name of the judge."""
    judge: Judge
    sizes: tuple[PictureSize, ...] = ()
    """Size of each picture, upright."""
    fault: FieldError | None = None
    """Why it cannot be judged."""

    @property
    def length(self) -> int:
        """Count the characters, those of pictures included."""
        request = self.request
        shown = (*request.references, *request.choices, *request.criteria)
        texts = (*shown, *request.responses, *request.images)
        return len(request.question) + sum(map(len, texts))


class Intake:
    """Maker of jobs whose cost for the model thread is known and bounded.

    A picture may take ``picture_seconds`` to decode.
    """

    def __init__(self, picture_seconds: float, readers: Readers) -> None:
        self._readers = readers
        self._decoders = Decoders(picture_seconds)

    async def jobs(
        self, requests: Sequence[CheckedRequest], counters: Mapping[str, TokenCounter]
    ) -> list[ModelJob | Verdict]:
        """Make the job of each request of a call, or the verdict that it cannot be judged."""
        # A refused call decodes no more pictures.
        decoded = await run_together(map(self._decoded, requests))
        length = sum(each.length for each in decoded)
        outcomes: list[ModelJob | Verdict] = []
        while left := decoded[len(outcomes) :]:
            costs = await self._readers.read(length, _costs, left, counters)
            outcomes += map(_job, left, costs)
        return outcomes

    async def _decoded(self, checked: CheckedRequest) -> CheckedRequest:
        request = checked.request
        if not checked.judge.encoder.pictures(get_task(request.task), request):
            return checked
        try:
            images, sizes = await self.decoded(request.images, checked.sizes, checked.judge)
        except FieldError as fault:
            return replace(checked, fault=fault)
        request = request.model_copy(update={"images": images})
        return replace(checked, request=request, sizes=sizes)

    async def decoded(
        self, sources: Sequence[str], sizes: Sequence[PictureSize], judge: Judge
    ) -> tuple[tuple[str, ...], tuple[PictureSize, ...]]:
        """Turn data URLs into PNGs that the model thread reads in no time; return their sizes too.

        They are decoded in other processes, and are no larger than the judge sees them. If that
        size is unknown, as for a model on another server, they have at most ``MOST_SENT_PIXELS``.
        Raises ``FieldError`` if one cannot be read, or not in time; ``ApiError`` 429 if the service
        then holds too many bytes.
        """
        num_held = call_bytes.get()
        is_size_known = judge.engine.posterior == "exact"
        pictures, seen = [], []
        for source, size in zip(sources, sizes, strict=True):
            scaled = (
                judge.backbone.scaled_size(size)
                if is_size_known
                else size.at_most(MOST_SENT_PIXELS)
            )
            pictures.append(await self._decoders.decode(source, scaled))
            seen.append(scaled or size)
            if num_held:
                num_held.take(len(pictures[-1]))
        return tuple(pictures), tuple(seen)

    async def close(self) -> None:
        """End the processes that decode pictures."""
        await self._decoders.close()


def _costs(
    requests: Sequence[CheckedRequest], counters: Mapping[str, TokenCounter]
) -> list[int | FieldError]:
    """Estimate how many tokens each request costs, or say why it cannot be judged.

    After ``TURN_S`` it stops and leaves the others to the next turn.
    """
    costs: list[int | FieldError] = []
    end = time.monotonic() + TURN_S
    for each in requests:
        if costs and time.monotonic() > end:
            break
        require_open()
        try:
            if each.fault:
                raise each.fault
            costs.append(request_tokens(each, counters[each.name]))
        except FieldError as fault:
            costs.append(fault)
    return costs


def _job(checked: CheckedRequest, cost: int | FieldError) -> ModelJob | Verdict:
    request = checked.request
    if isinstance(cost, FieldError):
        return Verdict.from_error(cost, request, judge_name=checked.name)
    return ModelJob(
        checked.name,
        "text" if request.mode == "critique" else "score",
        cost,
        request,
        caller=caller_name(),
        request_id=request_id.get(),
    )


def text_tokens(texts: Iterable[str]) -> int:
    """Estimate how many tokens some texts have, without a tokenizer."""
    return sum(len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN


def picture_tokens(sizes: Iterable[PictureSize], judge: Judge) -> int:
    """Count the tokens that a judge's model reads for pictures; 0 if it cannot take them."""
    try:
        return sum(map(judge.backbone.num_picture_tokens, sizes))
    except FieldError:  # the judge refuses the request before its model runs
        return 0


def request_tokens(checked: CheckedRequest, count: TokenCounter) -> int:
    """Estimate how many tokens a judge's model reads and writes for a request.

    The texts are those that the model reads, with headings and what stands between the items of a
    list. The tokens of pictures are exact.

    Raises ``FieldError`` if the texts are longer than the model reads, even without the responses,
    which the judge shortens. Tokens are counted only if they may be too many. The judge itself
    checks the whole prompt, which is a little longer, to the token.
    """
    request, judge = checked.request, checked.judge
    task = get_task(request.task)
    fields = task.item(request)
    texts = [field.text for field in fields if not field.is_response]
    context = judge.backbone.context
    # A token has at least a byte, so shorter texts need no count.
    if sum(len(text.encode(errors="replace")) for text in texts) >= context:
        num_tokens = sum(map(count, texts))
        if num_tokens >= context:
            raise FieldError(
                longest_field(request),
                f"the prompt has more than {num_tokens:,} tokens; {judge.backbone.name} reads "
                f"{context:,}; shorten the question, references or choices",
            )
    sizes = dict(zip(request.images, checked.sizes, strict=True))
    shown = [sizes[source] for source in judge.encoder.pictures(task, request)]
    tokens = FRAME_TOKENS + text_tokens(f"{field.heading}: {field.text}" for field in fields)
    tokens += picture_tokens(shown, judge)
    if request.mode == "critique":
        given, most = request.given_critique, request.critique_tokens
        tokens += most if given is None else min(most, text_tokens([given]))
    is_read_twice = len(request.responses) == 2 and request.order == "both"
    return 2 * tokens if is_read_twice else tokens
