"""Where the service listens, how it starts, and how it ends."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from judging import CustosError, Judge
from serve.middleware.other_sites import is_loopback
from serve.queue.service import Service

DRAIN_S = 60.0
LAST_ANSWERS_S = 5
HEADERS_S = 30
MAX_CONNECTIONS = 2000
MAX_HEADER_BYTES = 32_768
MIN_KEY_CHARS = 16
SWITCH_S = 0.0005
"""How long the event loop may keep the interpreter from the model thread. A forward pass asks for
it thousands of times; Python's 5 ms would be added to each while bodies are parsed."""


def bind(host: str, port: int, *, is_guarded: bool = False) -> socket.socket:
    """Take a port of this machine; nothing is answered on it before :func:`run`.

    Args:
        host: Address or ``localhost``.
        port: Port; 0 takes a free one.
        is_guarded: Callers need a key, or everybody may call: other machines may connect.

    Raises:
        CustosError: If the host can be reached from outside unguarded, or the port is taken.
    """
    if not (is_guarded or is_loopback(host)):
        raise CustosError(
            f"--host '{host}': other machines could call without a key; set CUSTOS_API_KEYS or "
            "--api-key-file, or say --allow-open"
        )
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise CustosError(
            f"cannot listen on {host} port {port} ({reason}); try another --port"
        ) from None
    return listener


def url(listener: socket.socket) -> str:
    """Address of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def read_keys(file: Path | None) -> tuple[str, ...]:
    """Access keys: the lines of a file, or ``CUSTOS_API_KEYS``, divided by commas.

    Raises:
        CustosError: If the file cannot be read or has no keys, or a key is easily guessed.
    """
    if file:
        try:
            given = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeError):
            raise CustosError(f"--api-key-file '{file}': cannot be read") from None
    else:
        given = os.environ.get("CUSTOS_API_KEYS", "").split(",")
    keys = tuple(key.strip() for key in given if key.strip())
    if file and not keys:
        raise CustosError(f"--api-key-file '{file}': holds no key")
    if any(len(key) < MIN_KEY_CHARS for key in keys):
        raise CustosError(
            f"an access key needs at least {MIN_KEY_CHARS} characters; "
            "make one with: openssl rand -hex 32"
        )
    return keys


class Server(uvicorn.Server):
    """Answers until a signal, then drains: no new work, what was accepted is answered.

    Accepted work is given ``DRAIN_S``. A second signal ends the wait.
    """

    def __init__(self, app: FastAPI, service: Service) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_keep_alive=HEADERS_S,
                timeout_graceful_shutdown=LAST_ANSWERS_S,
            )
        )
        self.service = service
        self._drain_until: float | None = None

    def stop(self) -> None:
        """End without waiting for anybody."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, end at the second."""
        self._captured_signals.append(sig)
        if self._drain_until is None:
            self._drain_until = time.monotonic() + DRAIN_S
            self.service.drain()
        else:
            self.should_exit = self.force_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop listening."""
        is_told = await super().on_tick(counter)
        if self._drain_until is None:
            return is_told
        return is_told or self.service.is_idle or time.monotonic() > self._drain_until


class Connection(H11Protocol):
    """A connection that is closed when the headers of a call take longer than ``HEADERS_S``."""

    _patience: asyncio.TimerHandle | None = None

    # uvicorn itself narrows the protocol's transport.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._watch()

    def handle_events(self) -> None:
        """Take in what came."""
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._patience:
            self._patience.cancel()

    def _watch(self) -> None:
        is_waiting = self.cycle is None or self.cycle.response_complete
        if is_waiting and self._patience is None:
            self._patience = self.loop.call_later(HEADERS_S, self.transport.close)
        elif not is_waiting and self._patience:
            self._patience.cancel()
            self._patience = None


def run(
    app: FastAPI,
    service: Service,
    listener: socket.socket,
    load: Callable[[], Mapping[str, Judge]],
) -> None:
    """Listen, load the judges meanwhile, and answer until a signal comes.

    Raises:
        CustosError: If the judges cannot be loaded.
    """
    server = Server(app, service)
    sys.setswitchinterval(SWITCH_S)
    failures: list[BaseException] = []

    def open_service() -> None:
        try:
            service.open(load())
        except BaseException as error:  # noqa: BLE001 -- raised again below
            failures.append(error)
            server.stop()

    # A daemon: a signal that comes while judges load ends the process without waiting for them.
    threading.Thread(target=open_service, name="loading", daemon=True).start()
    server.run(sockets=[listener])
    if failures:
        raise failures[0]
