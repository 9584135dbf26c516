"""Several services that serve the same judges, as one grader.

pool = JudgePool.connect(["http://10.0.0.1:8000", "http://10.0.0.2:8000"])
for verdict in pool.grade(requests):
    print(verdict.label)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Self

from clients.connection import ServerRefusal
from clients.event_loop import run_coroutine
from clients.judge_client import CALLS, WINDOW, AsyncJudgeClient, digest_of_judges
from clients.server_health import TRIES, ServerHealth, is_overdue
from judging.batches import in_batches
from judging.errors import CustosError
from judging.types import JudgeRequest, Verdict, each_request

BUSY_TRIES = 8
"""Tries of a call while the service says that it is busy (429), as others may be too."""
PAUSE = 0.02
"""Seconds between two looks for work, when there is none to begin."""


@dataclass(eq=False)
class _Batch:
    """Requests that are sent in one call, and who has been sent them."""

    requests: Sequence[JudgeRequest]
    verdicts: list[Verdict] | None = None
    started: float = 0.0
    services: set[str] = field(default_factory=set)


class _Window:
    """Requests that are graded at once, cut into batches.

    Args:
        requests: Requests in order.
        size: Requests of a batch.
    """

    def __init__(self, requests: Sequence[JudgeRequest], size: int) -> None:
        starts = range(0, len(requests), size)
        self.batches = [_Batch(requests[start : start + size]) for start in starts]
        self._waiting = deque(self.batches)
        self._seconds: list[float] = []

    @property
    def is_done(self) -> bool:
        """Return whether every request has a verdict."""
        return self.num_done == len(self.batches)

    @property
    def num_done(self) -> int:
        """Return how many batches have their verdicts."""
        return sum(batch.verdicts is not None for batch in self.batches)

    def take(self, url: str) -> _Batch | None:
        """Return a batch for a service: one that waits, else one that is overdue elsewhere."""
        if self._waiting:
            batch = self._waiting.popleft()
            batch.started = monotonic()
        else:
            overdue = [batch for batch in self.batches if self._is_overdue(batch, url)]
            if not overdue:
                return None
            batch = min(overdue, key=lambda batch: (len(batch.services), batch.started))
        batch.services.add(url)
        return batch

    def _is_overdue(self, batch: _Batch, url: str) -> bool:
        if batch.verdicts is not None or url in batch.services:
            return False
        return is_overdue(monotonic() - batch.started, self._seconds)

    def give_back(self, batch: _Batch, url: str) -> None:
        """Let other services have a batch that a service failed on."""
        batch.services.discard(url)
        if batch.verdicts is None and not batch.services and batch not in self._waiting:
            self._waiting.appendleft(batch)

    def finish(self, batch: _Batch, verdicts: list[Verdict], seconds: float) -> None:
        """Keep the verdicts on a batch, unless another service was faster."""
        self._seconds.append(seconds)
        if batch.verdicts is None:
            batch.verdicts = verdicts


class JudgePool:
    """Several services as one judge; each takes new work when it has done its own.

    A service that fails is left out for a while, and others get its requests. If all have failed,
    each is asked once more before the pool gives up, as one may be back meanwhile. What a slow
    service keeps too long is sent to another one as well, and the first verdicts count. So every
    request gets one verdict as long as one service answers.

    Use :meth:`connect`.

    Args:
        urls: Addresses of the services.
        options: ``api_key``, ``concurrency`` (of each service) and ``deadline``, as in
            :class:`~clients.judge_client.AsyncJudgeClient`.

    Attributes:
        cards: Cards of the judges, which all services have alike.
    """

    def __init__(self, urls: Sequence[str], **options: Any) -> None:
        self.name = " ".join(sorted(urls))
        self.cards: list[dict[str, Any]] = []
        self._options = {**options, "tries": TRIES, "busy_tries": BUSY_TRIES}
        self._services = [ServerHealth(url) for url in urls]
        self._size = AsyncJudgeClient(urls[0], **self._options).batch
        """Most requests that the services were found to take in one call."""

    @classmethod
    def connect(cls, urls: Sequence[str], **options: Any) -> Self:
        """Return the pool of all services that answer now and, later, of the others.

        Raises:
            ServerRefusal: If no service answers.
            CustosError: If two services have different judges, or an address is given twice.
        """
        if repeated := [url for url in urls if urls.count(url) > 1]:
            raise CustosError(f"--judge {repeated[0]}: given twice")
        pool = cls(urls, **options)
        pool.cards = run_coroutine(pool._shared_cards())
        return pool

    async def _shared_cards(self) -> list[dict[str, Any]]:
        read = [self._cards(service) for service in self._services]
        answers = await asyncio.gather(*read, return_exceptions=True)
        known: list[tuple[str, list[dict[str, Any]]]] = []
        for service, answer in zip(self._services, answers, strict=True):
            if isinstance(answer, ServerRefusal):
                service.note_failure(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                known.append((service.url, answer))
        if not known:
            raise self._failure()
        url, cards = known[0]
        for other, others in known[1:]:
            if others != cards:
                raise CustosError(
                    f"--judge {url} and --judge {other} serve different judges "
                    f"({_difference(cards, others)}): their verdicts may differ"
                )
        return cards

    async def _cards(self, service: ServerHealth) -> list[dict[str, Any]]:
        """Return the cards of a service, without what changes no verdict."""
        cards = await AsyncJudgeClient(service.url, **self._options).judges()
        without = ("server", "measured")
        return [{key: card[key] for key in card if key not in without} for card in cards]

    def fingerprint(self, request: JudgeRequest) -> str:
        """Return a digest of the cards of the judges that may grade a request.

        Raises:
            FieldError: If no judge there takes the task.
        """
        return digest_of_judges(self.cards, request, self.name)

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Grade requests in order.

        Yields:
            One verdict per request.

        Raises:
            CustosError: If no service answers any more.
        """
        for window in in_batches(each_request(requests), WINDOW):
            yield from run_coroutine(self._grade_window(window))

    async def _grade_window(self, requests: Sequence[JudgeRequest]) -> list[Verdict]:
        window = _Window(requests, self._size)
        asked = [service for service in self._services if not service.is_left_out]
        while not window.is_done:
            num_done = window.num_done
            await self._grade_with(asked, window)
            if asked is self._services and window.num_done == num_done:
                raise self._failure()
            asked = self._services  # one that failed may be back, as after a restart
        return [verdict for batch in window.batches for verdict in batch.verdicts or ()]

    async def _grade_with(self, services: Sequence[ServerHealth], window: _Window) -> None:
        """Have services grade until the window is done or all of them have failed."""
        clients = [AsyncJudgeClient(service.url, **self._options) for service in services]
        async with AsyncExitStack() as stack:
            for client in clients:
                await stack.enter_async_context(client)
            workers = [
                asyncio.create_task(self._serve(service, client, window))
                for service, client in zip(services, clients, strict=True)
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                self._size = min([self._size, *(client.batch for client in clients)])

    async def _serve(
        self, service: ServerHealth, client: AsyncJudgeClient, window: _Window
    ) -> None:
        """Have a service grade until the window is done or the service fails."""
        try:
            if service.error and (cards := await self._cards(service)) != self.cards:
                raise CustosError(
                    f"{service.url}: serves other judges than before "
                    f"({_difference(self.cards, cards)})"
                )
            service.error = None
            calls = [
                asyncio.create_task(self._call(service, client, window))
                for _ in range(self._num_calls(service))
            ]
            done = asyncio.create_task(_until_done(window))
            try:
                await asyncio.wait([done, *calls], return_when=asyncio.FIRST_COMPLETED)
                for call in calls:
                    if call.done():
                        call.result()
            finally:
                for task in (done, *calls):
                    task.cancel()
                await asyncio.gather(done, *calls, return_exceptions=True)
        except CustosError as error:
            service.note_failure(error)

    async def _call(self, service: ServerHealth, client: AsyncJudgeClient, window: _Window) -> None:
        """Send batch after batch to a service."""
        while not window.is_done:
            batch = window.take(service.url)
            if batch is None:
                await asyncio.sleep(PAUSE)
                continue
            started = monotonic()
            try:
                verdicts = [verdict async for verdict in client.grade(batch.requests)]
            except BaseException:
                service.note_no_answer(monotonic() - started)
                window.give_back(batch, service.url)
                raise
            seconds = monotonic() - started
            service.note_answer(seconds)
            window.finish(batch, verdicts, seconds)

    def _num_calls(self, service: ServerHealth) -> int:
        """Return how many calls a service gets at a time: fewer, the slower it was."""
        fastest = min((other.seconds for other in self._services if other.seconds), default=0.0)
        if not service.seconds:
            return CALLS
        return max(1, round(CALLS * fastest / service.seconds))

    def _failure(self) -> CustosError:
        """Return the error for a pool without a service that answers."""
        errors = "; ".join(str(service.error) for service in self._services if service.error)
        return ServerRefusal(f"no service answers: {errors}")


def _difference(cards: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    """Return the first thing in which the judges of two services differ."""
    known, other = ({card["name"]: card for card in both} for both in (cards, others))
    if known.keys() != other.keys():
        return f"{', '.join(known)} and {', '.join(other)}"
    for name, card in known.items():
        for key in sorted(card.keys() | other[name].keys()):
            if card.get(key) != other[name].get(key):
                return f"{name}: {key} {card.get(key)} and {other[name].get(key)}"
    return "their order"


async def _until_done(window: _Window) -> None:
    while not window.is_done:
        await asyncio.sleep(PAUSE)
