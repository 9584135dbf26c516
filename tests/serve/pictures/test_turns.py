"""Callers that take turns at decoding pictures."""

from __future__ import annotations

import asyncio

from serve.call_context import access_key
from serve.keys import AccessKey
from serve.pictures.decoders import Decoders
from serve.turns import Turns
from tests.serve.made_up import picture


def test_a_picture_does_not_wait_for_all_pictures_of_another_key() -> None:
    order: list[str] = []

    async def decode(decoders: Decoders, name: str) -> None:
        access_key.set(AccessKey(name, b""))
        await decoders.decode(picture(), None)
        order.append(name)

    async def main() -> None:
        decoders = Decoders(30, num_processes=1)
        async with asyncio.TaskGroup() as group:
            for name in [*["alice"] * 12, "bob"]:
                group.create_task(decode(decoders, name))
        await decoders.close()

    asyncio.run(main())
    assert len(order) == 13
    assert order.index("bob") <= 2


def test_whoever_leaves_takes_no_slot_along() -> None:
    """Cancel one that waits, and one whose slot has come but who does not run yet."""

    async def main() -> None:
        turns = Turns(1)
        first_may_end = asyncio.Event()

        async def work(event: asyncio.Event | None = None) -> None:
            async with turns.slot("anybody"):
                if event:
                    await event.wait()

        first = asyncio.create_task(work(first_may_end))
        waiting, next_one, last = (asyncio.create_task(work()) for _ in range(3))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        first_may_end.set()
        while not first.done():
            await asyncio.sleep(0)
        next_one.cancel()
        await asyncio.wait_for(last, 10)
        await asyncio.wait_for(work(), 10)

    asyncio.run(main())
