"""The processes that decode pictures, and how long each picture may take."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from judging.errors import FieldError
from judging.files.pictures import PictureSize
from judging.models.devices import num_cores
from serve.calls.waiting import Turns
from serve.pictures import decode

ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")
"""Variables that the processes get; access keys are not among them."""


class Decoders:
    """A few processes that decode pictures, each one picture at a time.

    A picture may break or delay its decoder. So no picture of a client is decoded in the process of
    the model, and a process that takes more than ``seconds`` is killed. A new one takes its place.
    There are at most ``num_processes``; default half of the cores, and at least two. Callers take
    turns, as in the queue, and a named one has at most half of the processes, so that another one's
    picture need not wait for its large ones.

    Used on one event loop.
    """

    def __init__(self, seconds: float, num_processes: int | None = None) -> None:
        self.seconds = seconds
        num_processes = num_processes or max(2, num_cores() // 2)
        self._turns = Turns(num_processes, max(1, num_processes // 2))
        self._idle: list[Process] = []
        self._processes: set[Process] = set()

    async def decode(self, source: str, size: PictureSize | None) -> str:
        """Decode a data URL into one of a PNG, scaled to ``size`` unless that is ``None``.

        Raises ``FieldError`` if it cannot be read, or not in time.
        """
        async with self._turns.slot():
            answer = await self._answer(source, size)
            if answer is None:  # the process was killed, perhaps by the system for memory
                answer = await self._answer(source, size)
        if not answer:
            raise FieldError("images", "data URL is not a readable picture")
        return answer

    async def _answer(self, source: str, size: PictureSize | None) -> str | None:
        """Ask a process for a picture; ``None`` if it ended before it answered."""
        self._idle = [process for process in self._idle if process.returncode is None]
        is_new = not self._idle
        process = await self._start() if is_new else self._idle.pop()
        assert process.stdin
        assert process.stdout
        url = source.encode()
        try:
            if is_new:  # no picture is to blame for the time that the start takes
                await process.stdout.readexactly(len(decode.READY))
            async with asyncio.timeout(self.seconds):
                process.stdin.write(decode.QUESTION.pack(len(url), *(size or (0, 0))))
                process.stdin.write(url)
                await process.stdin.drain()
                head = await process.stdout.readexactly(decode.ANSWER.size)
                answer = await process.stdout.readexactly(*decode.ANSWER.unpack(head))
        except TimeoutError:
            message = f"a picture takes longer than {self.seconds:g} s to decode"
            raise FieldError("images", message) from None
        except (OSError, asyncio.IncompleteReadError):
            return None
        else:
            self._idle.append(process)
            return answer.decode()
        finally:
            if process not in self._idle:
                _kill(process)

    async def close(self) -> None:
        """End the processes."""
        self._idle.clear()
        for process in list(self._processes):
            _kill(process)
            await process.wait()

    async def _start(self) -> Process:
        self._processes = {each for each in self._processes if each.returncode is None}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", decode.__file__),
            stdin=PIPE,
            stdout=PIPE,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        )
        self._processes.add(process)
        return process


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):  # it has ended by itself
        process.kill()
