"""A real HTTP server on a free port that answers chat completions, with faults when told to."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Self

RESET = "reset"


@dataclass
class Say:
    """One answer: a status and a body, after a delay."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    is_endless: bool = False
    """Mark of a body that is sent again and again."""


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    at: float
    headers: dict[str, str]
    body: dict[str, Any]
    path: str = ""

    @property
    def text(self) -> str:
        """What the user said last."""
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else str(content[-1]["text"])


def completion(text: str, prompt_tokens: int = 100, completion_tokens: int = 10) -> str:
    said = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return json.dumps({"id": "1", "object": "chat.completion", "choices": [said], "usage": usage})


class FakeServer:
    """Says ``faults`` first, one per request, then what ``answer`` makes of each request."""

    def __init__(self) -> None:
        self.faults: deque[Say | str] = deque()
        self.answer: Callable[[Seen], Say | str] = lambda seen: Say(body=completion("Hello."))
        self.seen: list[Seen] = []
        self.in_flight = self.most_in_flight = 0
        self.url = ""
        self._ready = threading.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                pairs = (line.partition(": ") for line in head[1:] if line)
                headers = {name.lower(): value for name, _, value in pairs}
                size = int(headers.get("content-length", 0))
                body = json.loads(await reader.readexactly(size)) if size else {}
                seen = Seen(monotonic(), headers, body, head[0].split()[1])
                self.seen.append(seen)
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    said = self.faults.popleft() if self.faults else self.answer(seen)
                    if isinstance(said, str):
                        writer.transport.abort()
                        return
                    await asyncio.sleep(said.delay)
                finally:
                    self.in_flight -= 1
                content = said.body.encode()
                length = {} if said.is_endless else {"Content-Length": str(len(content))}
                given = {**length, **said.headers}
                lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
                writer.write(f"HTTP/1.1 {said.status} Any\r\n{lines}\r\n".encode() + content)
                await writer.drain()
                while said.is_endless:
                    writer.write(content)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is gone
        finally:
            writer.close()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()

    def kill(self) -> None:
        """Refuse new connections and break off those that there are, as a killed process does."""
        self.answer = lambda seen: RESET
        self._loop.call_soon_threadsafe(self._server.close)

    @contextmanager
    def running(self) -> Iterator[Self]:
        thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        thread.start()
        self._ready.wait()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join()
