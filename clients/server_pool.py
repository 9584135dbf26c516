"""Several servers of one model as one: least work first, and no request waits for a slow one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Self

from clients.connection import BodyT, ModelServer, RequestRefused, ServerConnection
from clients.server_health import LEAST_PATIENCE, TRIES, ServerHealth, is_overdue
from judging.errors import CustosError

CALLS_REMEMBERED = 100
"""Calls whose times say how long a call takes."""


@dataclass(eq=False)
class _Member:
    """A server, its health, and its calls that are not answered yet."""

    server: ModelServer
    health: ServerHealth
    in_flight: int = 0


class ServerPool:
    """Servers of one model; what is known of them outlasts a connection.

    Args:
        servers: At least two; ``concurrency`` counts requests to each of them.
    """

    def __init__(self, servers: Sequence[ModelServer]) -> None:
        self.members = [
            _Member(
                replace(server, tries=min(server.tries, TRIES), busy_tries=server.tries),
                ServerHealth(server.base_url),
            )
            for server in servers
        ]
        self._durations: deque[float] = deque(maxlen=CALLS_REMEMBERED)

    @property
    def addresses(self) -> str:
        """Return the addresses of all servers, in alphabetical order."""
        return " ".join(sorted(member.server.base_url for member in self.members))

    def best(self, candidates: Sequence[_Member]) -> _Member:
        """Return the server that will be done first, among those that did not just fail."""
        healthy = [member for member in candidates if not member.health.is_left_out] or candidates
        known = [member.health.seconds for member in self.members if member.health.seconds]
        fastest = min(known, default=1.0)
        return min(
            healthy,
            key=lambda member: (member.in_flight + 1) * (member.health.seconds or fastest),
        )

    def is_overdue(self, seconds: float) -> bool:
        """Return whether a call takes much longer than the last calls did."""
        return is_overdue(seconds, self._durations)

    def finish(self, member: _Member, seconds: float) -> None:
        """Note a call that was answered after so many seconds."""
        member.health.note_answer(seconds)
        self._durations.append(seconds)


class PoolConnection:
    """Connections to all servers of a pool. Use it as an asynchronous context manager."""

    def __init__(self, pool: ServerPool) -> None:
        self._pool = pool
        self._connections = {member: ServerConnection(member.server) for member in pool.members}
        self.gate = asyncio.Semaphore(sum(m.server.concurrency for m in pool.members))
        """Semaphore for callers that ask for more at once than the servers' settings allow."""
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for connection in self._connections.values():
            await self._stack.enter_async_context(connection)
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._stack.aclose()

    async def post(self, path: str, body: bytes, body_type: type[BodyT], name: str) -> BodyT:
        """Send a request to the best server, and to others if it fails or takes too long.

        Args:
            path: As for :meth:`clients.connection.ServerConnection.post`.
            body: As there.
            body_type: As there.
            name: As there.

        Raises:
            RequestRefused: If a server refuses this request.
            CustosError: If every server fails.
        """
        left, calls, started = list(self._pool.members), set[asyncio.Task[BodyT]](), 0.0
        try:
            while True:
                if left and (not calls or self._pool.is_overdue(monotonic() - started)):
                    member, started = self._pool.best(left), monotonic()
                    left.remove(member)
                    calls.add(self._start(member, path, body, body_type, name))
                done, calls = await asyncio.wait(
                    calls,
                    timeout=LEAST_PATIENCE if left else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                errors = {task: error for task in done if (error := task.exception())}
                if answered := done - errors.keys():
                    return answered.pop().result()
                for error in errors.values():
                    if isinstance(error, RequestRefused) or not (left or calls):
                        raise error
        finally:
            for task in calls:
                task.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    def _start(
        self, member: _Member, path: str, body: bytes, body_type: type[BodyT], name: str
    ) -> asyncio.Task[BodyT]:
        """Begin a call; it counts as the server's work from now on, though it runs later."""
        member.in_flight += 1
        call = asyncio.create_task(self._call(member, path, body, body_type, name))
        call.add_done_callback(lambda _: setattr(member, "in_flight", member.in_flight - 1))
        return call

    async def _call(
        self, member: _Member, path: str, body: bytes, body_type: type[BodyT], name: str
    ) -> BodyT:
        connection = self._connections[member]
        async with connection.gate:
            started = monotonic()
            try:
                reply = await connection.post(path, body, body_type, name)
            except asyncio.CancelledError:  # another server was faster
                member.health.note_no_answer(monotonic() - started)
                raise
            except RequestRefused:
                raise
            except CustosError as error:
                member.health.note_failure(error)
                raise
        self._pool.finish(member, monotonic() - started)
        return reply
