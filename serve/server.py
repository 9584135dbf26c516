"""The process of a service: the addresses that it listens on, its log, its start and its end."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clients.connection import is_loopback
from judging import CustosError
from judging.judge import Judge
from judging.log_lines import LineFormatter
from serve.calls.errors import ApiError
from serve.gate.connections import (
    CountedListener,
    OpenConnections,
    limited_config,
    raise_file_limit,
)
from serve.gate.gate import KnownKeys, check_site, warn_of_mode
from serve.queue.metrics import Metrics
from serve.queue.service import Service

logger = logging.getLogger("custos.serve")

DRAIN_SPARE_S = 1.0
"""How much longer than the longest deadline a drain may last."""
LAST_ANSWERS_S = 5
"""Longest time to send the last answers."""
SWITCH_S = 0.0005
"""Longest time that the event loop may keep Python's interpreter from the model thread. A forward
pass needs the interpreter thousands of times. Python's default of 5 ms would be added to each while
bodies are parsed."""
OPERATOR_CONNECTIONS = 64, 16
"""Most connections to the operator's address, in all and from one address."""
STDERR = 2
THROTTLE_S = 10.0
MOST_WAITING = 4_000_000
"""Characters of lines of the log that wait to be written. Further ones are left out."""
LAST_LINES_S = 1.0
"""Longest time to write the last lines of the log, as the process ends."""


def bind(
    host: str, port: int, *, is_guarded: bool = False, option: str | None = None
) -> CountedListener:
    """Take a port of this machine, 0 a free one. Calls wait there until :func:`run` answers them.

    Other machines may reach the host only if ``is_guarded``: their calls need a key, or the user
    allows them all. Raises ``CustosError`` otherwise, or if the address cannot be used; it names
    the ``option`` that gave it, by default ``--host`` or ``--port``.
    """
    if not (is_guarded or is_loopback(host)):
        raise CustosError(
            f"--host '{host}': other machines could call without a key; set CUSTOS_API_KEYS or "
            "--api-key-file, or give --allow-open"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sends small packets at once (TCP_NODELAY). The body of an answer
    # would wait 40 ms for the client's system to say that it has the header.
    listener = CountedListener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # At once, as another process may bind the same port as long as nobody listens.
        listener.listen()
    except (OSError, OverflowError, TypeError) as error:
        listener.close()
        is_host = isinstance(error, socket.gaierror | TypeError) or (
            isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL
        )
        reason = getattr(error, "strerror", None) or error
        raise CustosError(
            f"cannot listen on {host} port {port} ({reason}); "
            f"try another {option or ('--host' if is_host else '--port')}"
        ) from None
    return listener


def url(listener: socket.socket, scheme: str = "http") -> str:
    """Write the address of a bound socket as a URL."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@dataclass(frozen=True)
class TlsFiles:
    """Certificate chain and private key of a service that is called over https."""

    cert: Path
    key: Path

    def check(self) -> None:
        """Raise ``CustosError`` unless the files can be read and belong together."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.cert, self.key, password=""
            )
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise CustosError(
                f"--tls-cert '{self.cert}', --tls-key '{self.key}': cannot be used ({reason}); "
                "expected a certificate and its private key without a password, both as PEM"
            ) from None
        warn_of_mode(f"--tls-key '{self.key}'", self.key)


class DrainingServer(uvicorn.Server):
    """Server that after a signal takes no new work, but answers what it has accepted.

    It goes on listening meanwhile, so that new calls are told when to come again, and
    ``/health/ready`` is 503. uvicorn's own ``timeout_graceful_shutdown`` stops listening at once.
    The wait ends when the longest deadline is over, or with a second signal. What is left then is
    answered 503.
    """

    def __init__(
        self,
        app: FastAPI,
        service: Service,
        tls: TlsFiles | None = None,
        keys: KnownKeys | None = None,
    ) -> None:
        self.open_connections = OpenConnections(
            raise_file_limit(), service.limits.address_connections
        )
        super().__init__(
            limited_config(
                app,
                self.open_connections,
                timeout_graceful_shutdown=LAST_ANSWERS_S,
                ssl_certfile=tls.cert if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )
        self.service = service
        self._tls = tls
        self._keys = keys
        self._terminals = [number for number in range(3) if os.isatty(number)]
        self._drain_end: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and to count connections."""
        for listener in sockets or ():
            if isinstance(listener, CountedListener):
                listener.open_connections = self.open_connections
        await super().startup(sockets)
        if threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.hang_up)

    def hang_up(self) -> None:
        """Read keys and certificates again; drain if the terminal of the process has gone."""
        if not all(map(os.isatty, self._terminals)):
            return self.handle_exit(signal.SIGHUP, None)
        if self._keys:
            self._keys.read_again()
        if self._tls:
            try:
                self._tls.check()
                self.config.ssl.load_cert_chain(self._tls.cert, self._tls.key)  # type: ignore[union-attr]  # loaded
            except CustosError as error:
                logger.error("%s; the certificate that was read before stays", error)
            else:
                logger.info("certificate read again: %s", self._tls.cert)

    def stop(self) -> None:
        """End without waiting for anybody."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, end the drain at the second.

        uvicorn's own would raise the signal again after the end, so that the process fails.
        """
        is_first = self._drain_end is None
        longest = self.service.limits.deadline_s + DRAIN_SPARE_S if is_first else 0.0
        self._drain_end = time.monotonic() + longest
        self.service.drain()

    async def on_tick(self, counter: int) -> bool:
        """Tell whether to stop listening."""
        should_stop = await super().on_tick(counter)
        if self._drain_end is None:
            return should_stop
        if time.monotonic() >= self._drain_end:
            self.service.stop()
            return True
        return should_stop or self.service.is_idle


def run(
    app: FastAPI,
    service: Service,
    listener: socket.socket,
    load: Callable[[], Mapping[str, Judge]],
    announce: Callable[[Mapping[str, Judge]], None],
    tls: TlsFiles | None = None,
    keys: KnownKeys | None = None,
) -> None:
    """Listen, load the judges meanwhile, answer until a signal comes, and end the process.

    The app comes from :func:`serve.app.create_app` with its service, which has no judges yet;
    ``announce`` is called once they answer. With ``tls`` answers go over https. Raises
    ``CustosError`` if the judges cannot be loaded.
    """
    server = DrainingServer(app, service, tls, keys)
    sys.setswitchinterval(SWITCH_S)
    failures: list[BaseException] = []

    def open_service() -> None:
        try:
            judges = load()
            # What is loaded stays. Each full garbage collection would walk through it for .2
            # seconds, in which no call gets an answer.
            gc.collect()
            gc.freeze()
            service.open(judges)
            announce(judges)
        except BaseException as error:  # noqa: BLE001 -- raised again below
            failures.append(error)
            server.stop()

    # A daemon, so that a signal ends the process even while judges are being loaded.
    threading.Thread(target=open_service, name="loading", daemon=True).start()
    server.run(sockets=[listener])
    if failures:
        raise failures[0]
    # Python would wait for threads that still read or look up, and abort in those that load or run
    # a model.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def answer_operator(metrics: Metrics, listener: CountedListener) -> None:
    """Answer ``GET /metrics`` with all counters, in a thread that ends with the process.

    Whoever reaches the address is the operator: there are no keys. It is answered also while the
    service starts, drains or is busy.
    """
    only_local = is_loopback(listener.getsockname()[0])

    async def answer(request: Request) -> Response:
        try:
            check_site(request.method, request.headers, only_local=only_local)
        except ApiError as error:
            return error.response()
        return metrics.response()

    listener.open_connections = OpenConnections(*OPERATOR_CONNECTIONS)
    app = Starlette(routes=[Route("/metrics", answer)])
    server = uvicorn.Server(limited_config(app, listener.open_connections))
    threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="operator", daemon=True
    ).start()


def start_log() -> None:
    """Write the log of this process to standard error."""
    handler = UnblockedHandler()
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)  # Its lines show whole addresses.
    for name in ("asyncio", "uvicorn.error"):  # They tell of every broken or refused connection.
        logging.getLogger(name).addFilter(Throttle())


class UnblockedHandler(logging.Handler):
    """Handler for which nobody waits: a thread of its own writes the lines to standard error.

    If nobody reads them there, lines are left out once many wait, and the log says how many.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[str] = deque()
        self._num_chars = self._num_left_out = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._write_lines, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have a line written."""
        line = f"{self.format(record)}\n"
        with self._changed:
            if self._num_chars + len(line) > MOST_WAITING:
                self._num_left_out += 1
                return
            if self._num_left_out:
                line = f"({self._num_left_out:,} lines of the log were left out here)\n{line}"
                self._num_left_out = 0
            self._lines.append(line)
            self._num_chars += len(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until the lines are written, for a short time."""
        end = time.monotonic() + LAST_LINES_S
        with self._changed:
            while self._lines and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)

    def _write_lines(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
                line = self._lines[0]
            with suppress(OSError):  # a full disk, or nobody is left to read it
                unwritten = memoryview(line.encode(errors="backslashreplace"))
                while unwritten:
                    # Not sys.stderr, whose lock a thread would hold while the process ends.
                    unwritten = unwritten[os.write(STDERR, unwritten) :]
            with self._changed:
                self._lines.popleft()
                self._num_chars -= len(line)
                self._changed.notify_all()


class Throttle(logging.Filter):
    """Filter of a logger that lets a message pass once in ``THROTTLE_S`` seconds.

    The next one that passes says how many were left out. Messages are the same if their first
    lines are, before values are put into them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next_at: dict[str, float] = {}
        self._num_left_out = Counter[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a message passes."""
        message = str(record.msg).partition("\n")[0]
        now = time.monotonic()
        if now < self._next_at.get(message, 0.0):
            self._num_left_out[message] += 1
            return False
        self._next_at[message] = now + THROTTLE_S
        if num_left_out := self._num_left_out.pop(message, 0):
            record.msg = f"{record.msg} ({num_left_out:,} more before it)"
        return True
