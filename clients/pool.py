"""Several servers as one: least work first, and no work waits for a slow or a dead one.

:class:`JudgePool` shares rows among services, :class:`PoolConnection` prompts among model servers.

pool = JudgePool.connect(["http://10.0.0.1:8000", "http://10.0.0.2:8000"])
for verdict in pool.grade(requests):
    print(verdict.label)
"""

from __future__ import annotations

import asyncio
import logging
import statistics
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Generic, Self, TypeVar

from clients.connection import (
    BodyT,
    ModelServer,
    RequestRefused,
    ServerConnection,
    ServerRefusal,
    run_coroutine,
    run_together,
)
from clients.judge_client import CALLS, AsyncJudgeClient, JudgeClient
from judging.errors import CustosError
from judging.progress import in_batches
from judging.types import JudgeRequest, Verdict

TRIES = 2
"""Tries of one call to a server; then another server gets the work."""
BUSY_TRIES = 8
"""Tries of a call while a service says that it is busy (429), as others may be too."""
COOL_OFF = 30.0
"""Seconds after which a server that failed is asked again, unless no other is left."""
PATIENCE = 3.0
"""A call that takes this many times as long as usual is sent to another server too ..."""
LEAST_PATIENCE = 0.2
"""... but not before this many seconds."""
CALLS_REMEMBERED = 100
"""Calls whose times say how long a call takes."""

logger = logging.getLogger(__name__)

ClientT = TypeVar("ClientT", bound=ServerConnection | AsyncJudgeClient)
ResultT = TypeVar("ResultT")


@dataclass(eq=False)
class Member:
    """A server of a pool: its speed, its last failure, and its calls without an answer yet."""

    url: str
    seconds: float = 0.0
    """Seconds of a call lately; 0 before the first."""
    error: CustosError | None = None
    """Why it failed; ``None`` if it has answered since."""
    retry_at: float = 0.0
    """When to ask it again after it failed, by the clock ``monotonic``."""
    in_flight: int = 0

    @property
    def is_left_out(self) -> bool:
        """Tell whether it failed less than :data:`COOL_OFF` seconds ago."""
        return self.error is not None and monotonic() < self.retry_at

    def note_failure(self, error: CustosError) -> None:
        """Leave the server out for a while, and log why unless it is left out already."""
        if not self.is_left_out:
            logger.warning("%s: left out for %g s: %s", self.url, COOL_OFF, error)
        self.error, self.retry_at = error, monotonic() + COOL_OFF


class Pool(Generic[ClientT]):
    """Servers that share work, with a client for each address; its knowledge outlasts a run."""

    def __init__(
        self, urls: Sequence[str], num_calls: int, client: Callable[[str], ClientT]
    ) -> None:
        self.members = [Member(url) for url in urls]
        self.num_calls = num_calls
        self.client = client
        self.durations: deque[float] = deque(maxlen=CALLS_REMEMBERED)
        self.addresses = " ".join(sorted(urls))

    def best(self, candidates: Sequence[Member]) -> Member:
        """Pick the server that will be done first, among those that did not just fail."""
        healthy = [member for member in candidates if not member.is_left_out] or candidates
        fastest = min((each.seconds for each in self.members if each.seconds), default=1.0)
        return min(healthy, key=lambda each: (each.in_flight + 1) * (each.seconds or fastest))

    def is_overdue(self, seconds: float) -> bool:
        """Tell whether a call takes much longer than the last calls did, if there were any."""
        usual = statistics.median(self.durations) if self.durations else float("inf")
        return seconds > max(LEAST_PATIENCE, PATIENCE * usual)


class PoolRun(Generic[ClientT]):
    """Work shared by a pool in one event loop. Use it as an asynchronous context manager."""

    def __init__(self, pool: Pool[ClientT]) -> None:
        self._pool = pool
        self.clients = {member: pool.client(member.url) for member in pool.members}
        self.gate = asyncio.Semaphore(pool.num_calls * len(pool.members))
        """Semaphore for callers that ask for more at once than all servers take."""
        self._gates = {member: asyncio.Semaphore(pool.num_calls) for member in pool.members}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for client in self.clients.values():
            await self._stack.enter_async_context(client)
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._stack.aclose()

    async def first_answer(self, ask: Callable[[Member, ClientT], Awaitable[ResultT]]) -> ResultT:
        """Have the best server answer, and others if it fails or takes too long.

        If all have failed, each is asked once more, as one may be back meanwhile. Raises
        ``RequestRefused`` if a server refuses this request, ``CustosError`` if every server fails.
        """
        members = self._pool.members
        left, is_last_round = list(members), False
        calls, started = set[asyncio.Task[ResultT]](), 0.0
        try:
            while True:
                if left and (not calls or self._pool.is_overdue(monotonic() - started)):
                    member, started = self._pool.best(left), monotonic()
                    left.remove(member)
                    calls.add(self._start(member, ask))
                done, calls = await asyncio.wait(
                    calls,
                    timeout=LEAST_PATIENCE if left else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                errors = {task: error for task in done if (error := task.exception())}
                if answered := done - errors.keys():
                    return answered.pop().result()
                if not left and not calls and not is_last_round:
                    left, is_last_round = list(members), True
                for error in errors.values():
                    if isinstance(error, RequestRefused) or not (left or calls):
                        raise error
        finally:
            for task in calls:
                task.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    def _start(
        self, member: Member, ask: Callable[[Member, ClientT], Awaitable[ResultT]]
    ) -> asyncio.Task[ResultT]:
        """Begin a call; it counts as the server's work from now on, though it runs later."""
        member.in_flight += 1
        call = asyncio.create_task(self._call(member, ask))
        call.add_done_callback(lambda _: setattr(member, "in_flight", member.in_flight - 1))
        return call

    async def _call(
        self, member: Member, ask: Callable[[Member, ClientT], Awaitable[ResultT]]
    ) -> ResultT:
        try:
            async with self._gates[member]:
                started = monotonic()
                try:
                    answer = await ask(member, self.clients[member])
                except asyncio.CancelledError:  # another server was faster
                    member.seconds = max(member.seconds, monotonic() - started)
                    raise
        except RequestRefused:
            raise
        except CustosError as error:
            member.note_failure(error)
            raise
        member.seconds, member.error = monotonic() - started, None
        self._pool.durations.append(member.seconds)
        return answer


class ServerPool(Pool[ServerConnection]):
    """Servers of one model; ``concurrency`` counts requests to each of them."""

    def __init__(self, servers: Sequence[ModelServer]) -> None:
        by_url = {
            each.base_url: replace(each, tries=min(each.tries, TRIES), busy_tries=each.tries)
            for each in servers
        }
        super().__init__([*by_url], servers[0].concurrency, lambda u: ServerConnection(by_url[u]))


class PoolConnection(PoolRun[ServerConnection]):
    """Connections to all servers of a :class:`ServerPool`."""

    async def post(self, path: str, body: bytes, body_type: type[BodyT], name: str) -> BodyT:
        """Send a request as :meth:`ServerConnection.post`, to the server that answers first."""
        return await self.first_answer(lambda _, server: server.post(path, body, body_type, name))


class JudgePool(JudgeClient):
    """Several services that serve the same judges, as one judge. Use :meth:`connect`.

    A service that fails is left out for a while, and others get its requests. What a slow service
    keeps too long is sent to another one as well, and the first verdicts count. So every request
    gets one verdict as long as one service answers.

    Options are ``api_key``, ``concurrency`` (of each service) and ``deadline``, as in
    :class:`~clients.judge_client.AsyncJudgeClient`.
    """

    def __init__(self, urls: Sequence[str], **options: Any) -> None:
        options |= {"tries": TRIES, "busy_tries": BUSY_TRIES}
        super().__init__(urls[0], **options)
        self._pool = Pool(urls, CALLS, lambda url: AsyncJudgeClient(url, **options))
        self.name = self._pool.addresses

    @classmethod
    def connect(cls, urls: Sequence[str], **options: Any) -> Self:  # type: ignore[override]
        """Return the pool of all services that answer now and, later, of the others.

        Raises:
            ServerRefusal: If no service answers.
            CustosError: If two services have different judges, or an address is given twice.
        """
        if repeated := [url for url in urls if urls.count(url) > 1]:
            raise CustosError(f"--judge {repeated[0]}: given twice")
        pool = cls(urls, **options)
        pool.judges = run_coroutine(pool._shared_cards())
        return pool

    async def _shared_cards(self) -> list[dict[str, Any]]:
        members = self._pool.members
        answers = await asyncio.gather(*map(self._cards, members), return_exceptions=True)
        known: list[tuple[str, list[dict[str, Any]]]] = []
        for member, answer in zip(members, answers, strict=True):
            if isinstance(answer, ServerRefusal):
                member.note_failure(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                known.append((member.url, answer))
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

    async def _cards(self, member: Member) -> list[dict[str, Any]]:
        """Read the cards of a service, without what changes no verdict."""
        without = ("server", "measured")
        return [
            {key: card[key] for key in card if key not in without}
            for card in await self._pool.client(member.url).judges()
        ]

    async def _grade_chunk(self, chunk: Sequence[JudgeRequest]) -> list[Verdict]:
        async def grade(batch: Sequence[JudgeRequest]) -> list[Verdict]:
            async def ask(member: Member, client: AsyncJudgeClient) -> list[Verdict]:
                if member.error and (cards := await self._cards(member)) != self.judges:
                    difference = _difference(self.judges, cards)
                    raise CustosError(
                        f"{member.url}: serves other judges than before ({difference})"
                    )
                member.error = None
                return [verdict async for verdict in client.grade(batch)]

            async with run.gate:
                return await run.first_answer(ask)

        async with PoolRun(self._pool) as run:
            try:
                found = await run_together(map(grade, in_batches(chunk, self._batch)))
            except CustosError:
                raise self._failure() from None
            finally:
                self._batch = min([self._batch, *(each.batch for each in run.clients.values())])
        return [verdict for verdicts in found for verdict in verdicts]

    def _failure(self) -> CustosError:
        """Make the error for a pool without a service that answers."""
        errors = "; ".join(str(each.error) for each in self._pool.members if each.error)
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
