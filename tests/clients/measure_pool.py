"""Time of prompts on three stand-ins for vLLM servers, one of them killed, one ten times as slow.

python -m tests.clients.measure_pool
"""

import asyncio
import json
import sys
import time
from contextlib import ExitStack
from itertools import product

from clients.chat import Completions
from clients.pool import PoolConnection, ServerPool
from tests.clients.fake_server import FakeServer, Say
from tests.clients.made_up import kill_after, server

PROMPTS, AT_ONCE = 96, 4
SECONDS = 1.0
"""Seconds of a call to a healthy server."""
REPLY = json.dumps({"choices": [{"text": ""}]})


def measure(is_slow: bool, is_killed: bool) -> None:
    """Print the time of all prompts, that of the longest, and how many calls each server had."""
    with ExitStack() as stack:
        healthy, slow, killed = (stack.enter_context(FakeServer().running()) for _ in range(3))
        healthy.answer = slow.answer = killed.answer = lambda seen: Say(body=REPLY, delay=SECONDS)
        if is_slow:
            slow.answer = lambda seen: Say(body=REPLY, delay=10 * SECONDS)
        if is_killed:
            kill_after(killed, 3)
        servers = (healthy, slow, killed)
        pool = ServerPool([server(each, concurrency=AT_ONCE) for each in servers])
        start = time.monotonic()
        longest = asyncio.run(_ask(pool))
        sys.stdout.write(
            f"slow {is_slow}, killed {is_killed}: {time.monotonic() - start:.1f} s, longest "
            f"{longest:.1f} s, calls {[len(each.seen) for each in servers]}\n"
        )


async def _ask(pool: ServerPool) -> float:
    """Ask for all prompts; return the seconds of the longest."""

    async def ask(connection: PoolConnection, number: int) -> float:
        async with connection.gate:
            start = time.monotonic()
            body = json.dumps({"prompt": number}).encode()
            await connection.post("completions", body, Completions, "prompt")
            return time.monotonic() - start

    async with PoolConnection(pool) as connection:
        return max(await asyncio.gather(*(ask(connection, n) for n in range(PROMPTS))))


if __name__ == "__main__":
    for case in product((False, True), repeat=2):
        measure(*case)
