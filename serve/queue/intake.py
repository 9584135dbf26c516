"""From a request to a job: whatever may be dear is done or refused before the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from judging.errors import FieldError
from judging.files.pictures import MOST_PIXELS, picture_size
from judging.judge import Judge
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict
from serve.call_context import call_bytes, caller_name, request_id, require_open
from serve.pictures.decoders import Decoders
from serve.queue.estimate import TokenCounter, check_length, request_tokens
from serve.queue.worker import ModelJob
from serve.threads import SHORT, Readers

MOST_SENT_PIXELS = 2 * MOST_PIXELS
"""Most pixels of a picture that is sent to a model whose own limit is not known. Chat models scale
larger ones down."""


@dataclass(frozen=True)
class Asked:
    """A checked request, and who is to judge it."""

    request: JudgeRequest
    """Its pictures are data URLs whose headers have been checked."""
    name: str
    """Name of the judge."""
    judge: Judge
    count: TokenCounter
    """Counts the tokens of a text, for any thread to call."""
    fault: FieldError | None = None
    """Why it cannot be judged."""

    @property
    def length(self) -> int:
        """Return the number of characters, those of pictures included."""
        request = self.request
        texts = (*request.references, *request.choices, *request.responses, *request.images)
        return len(request.question) + sum(map(len, texts))


class Intake:
    """Makes jobs whose cost for the model thread is known and bounded.

    Args:
        picture_seconds: Longest time to decode a picture.
        readers: Read what is long.
    """

    def __init__(self, picture_seconds: float, readers: Readers) -> None:
        self._readers = readers
        self._decoders = Decoders(picture_seconds)

    async def jobs(self, asked: Sequence[Asked]) -> list[ModelJob | Verdict]:
        """Return the job of each request of a call, or the verdict that it cannot be judged."""
        try:
            async with asyncio.TaskGroup() as group:  # a refused call decodes no more pictures
                tasks = [group.create_task(self._with_small_pictures(each)) for each in asked]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        shown = [task.result() for task in tasks]
        length = sum(each.length for each in shown)
        outcomes: list[ModelJob | Verdict] = []
        for batch in _batches(shown):
            costs = await self._readers.read(length, _costs, batch)
            outcomes += map(_job, batch, costs)
        return outcomes

    async def _with_small_pictures(self, asked: Asked) -> Asked:
        request = asked.request
        if not asked.judge.encoder.pictures(get_task(request.task), request):
            return asked
        try:
            images = await self.small_pictures(request.images, asked.judge)
        except FieldError as fault:
            return replace(asked, fault=fault)
        return replace(asked, request=request.model_copy(update={"images": images}))

    async def small_pictures(self, sources: Sequence[str], judge: Judge) -> tuple[str, ...]:
        """Return pictures as PNGs that the model thread can read in next to no time.

        They are decoded in other processes, and no larger than the judge sees them. Where that is
        not known, as of a model on another server, they have at most ``MOST_SENT_PIXELS``.

        Args:
            sources: Data URLs whose headers have been checked.
            judge: The judge that will see them.

        Raises:
            FieldError: If one cannot be read, or not in time.
            ApiError: 429 if the service then holds too many bytes.
        """
        num_held = call_bytes.get()
        is_size_known = judge.engine.posterior == "exact"
        pictures = []
        for source in sources:
            size = await self._readers.read(len(source), picture_size, source)
            scaled = (
                judge.backbone.scaled_size(size)
                if is_size_known
                else size.at_most(MOST_SENT_PIXELS)
            )
            picture = await self._decoders.decode(source, scaled)
            if num_held:
                num_held.take(len(picture))
            pictures.append(picture)
        return tuple(pictures)

    async def close(self) -> None:
        """End the processes that decode pictures."""
        await self._decoders.close()


def _batches(asked: Sequence[Asked]) -> Iterator[list[Asked]]:
    """Yield the requests in groups that take about as long to read as one that is not short."""
    batch: list[Asked] = []
    length = 0
    for each in asked:
        batch.append(each)
        length += each.length
        if length > SHORT:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def _costs(asked: Sequence[Asked]) -> list[int | FieldError]:
    """Return about how many tokens each request costs, or why it cannot be judged."""
    costs: list[int | FieldError] = []
    for each in asked:
        require_open()
        try:
            if each.fault:
                raise each.fault
            check_length(each.request, each.judge, each.count)
            costs.append(request_tokens(each.request, each.judge))
        except FieldError as fault:
            costs.append(fault)
    return costs


def _job(asked: Asked, cost: int | FieldError) -> ModelJob | Verdict:
    request = asked.request
    if isinstance(cost, FieldError):
        return Verdict.from_error(cost, request, judge_name=asked.name)
    kind: Literal["score", "text"] = "text" if request.mode == "critique" else "score"
    return ModelJob(
        *(asked.name, kind, cost, request), caller=caller_name(), request_id=request_id.get()
    )
