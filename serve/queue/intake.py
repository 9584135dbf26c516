"""From a request to a job: whatever may be dear is done or refused before the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from judging import Judge, JudgeRequest, Verdict
from judging.errors import FieldError
from judging.files.pictures import MOST_PIXELS, picture_size
from judging.tasks import get_task
from serve.call_context import call_bytes, caller_name, request_id
from serve.pictures.decoders import Decoders
from serve.queue.estimate import TokenCounter, check_length, request_tokens
from serve.queue.worker import ModelJob
from serve.threads import Readers

MOST_SENT_PIXELS = 2 * MOST_PIXELS
"""Most pixels of a picture that is sent to a model whose own limit is not known. Chat models scale
larger ones down."""


class Intake:
    """Makes jobs whose cost for the model thread is known and bounded.

    Args:
        picture_seconds: Longest time to decode a picture.
        readers: Read what is long.
    """

    def __init__(self, picture_seconds: float, readers: Readers) -> None:
        self._readers = readers
        self._decoders = Decoders(picture_seconds)

    async def job(
        self, request: JudgeRequest, name: str, judge: Judge, count: TokenCounter
    ) -> ModelJob | Verdict:
        """Return the job of a checked request, or the verdict that it cannot be judged.

        Args:
            request: Its pictures are data URLs whose headers have been checked.
            name: Name of the judge.
            judge: The judge.
            count: Counts the tokens of a text, for any thread.
        """
        kind: Literal["score", "text"] = "text" if request.mode == "critique" else "score"
        try:
            if judge.encoder.pictures(get_task(request.task), request):
                images = await self.small_pictures(request.images, judge)
                request = request.model_copy(update={"images": images})
            read_texts = request.question, *request.references, *request.choices, *request.images
            length = sum(map(len, read_texts))
            tokens = await self._readers.read(length, _cost, request, judge, count)
        except FieldError as error:
            return Verdict.from_error(error, request, judge_name=name)
        return ModelJob(
            name, kind, tokens, request, caller=caller_name(), request_id=request_id.get()
        )

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


def _cost(request: JudgeRequest, judge: Judge, count: TokenCounter) -> int:
    check_length(request, judge, count)
    return request_tokens(request, judge)
