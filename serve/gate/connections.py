"""Connections: how many there may be, how long each may last, and the answer to what is no HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import resource
import socket
import struct
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from serve.calls.errors import RETRY_AFTER_S, ApiError

logger = logging.getLogger("custos.serve")
server_logger = logging.getLogger("uvicorn.error")
"""Logger of connections, whose repeated lines are left out."""
Peer = tuple[str, int]

HEADERS_S = 30
"""Longest time to send the headers of a call."""
MAX_HEADER_BYTES = 32_768
"""Most bytes of the headers of a call, with its first line."""
MAX_HEADERS = 100
"""Most lines of them: browsers and proxies send about thirty, and each takes time to read."""
MAX_SMALL_CHUNKS = 1000
CHUNK_BYTES = 1000
"""Bytes that chunks of a body have on average, beyond ``MAX_SMALL_CHUNKS``. One takes as long to
read as a few kilobytes: 40,000 that come at once would keep all other calls waiting."""
MOST_PIECES = 16
"""Pieces of less than ``CHUNK_BYTES`` in which a call may come, each read at once."""
PIECES_S = 0.5
"""Wait before each further one, which others then come with. To read a byte costs as much as to
read a kilobyte."""
HEADERS_END = re.compile(rb"\n\r?\n")
LENGTHS = re.compile(rb"\n(?:content-length|transfer-encoding):((?:[^\n]|\n[ \t])*)", re.IGNORECASE)
"""Each length of the body that headers state, which may be a list."""
WRITE_S = 30
"""Time in which a client must read ``WRITE_BYTES`` of an answer that waits for it, or the rest."""
WRITE_BYTES = 32_768
NO_LINGER = struct.pack("ii", 1, 0)
"""Value of ``SO_LINGER`` with which a connection ends at once, whatever is unread."""
MAX_CONNECTIONS = 2000
MAX_REFUSED = 64
"""Connections beyond a limit that are told so; those beyond these are closed at once."""
REFUSAL_S = 2
"""Longest time to send the headers of a call that is refused."""
BACKLOG = 256
"""Connections that may wait to be accepted, and are accepted together."""
OTHER_FILES = 256
"""Open files that are no connections: models, cache, libraries, pictures that are fetched."""


def raise_file_limit() -> int:
    """Let the process open as many files as it may need; return how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = MAX_REFUSED + BACKLOG + OTHER_FILES
    needed = MAX_CONNECTIONS + others
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < needed:
            logger.warning("only %d files may be open: fewer connections are taken", soft)
            return max(1, soft - others)
    return MAX_CONNECTIONS


def address_group(host: str) -> str:
    """Name what counts as one address: an IPv4 address, or the network /64 of an IPv6 one."""
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv4Address):
        return host
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))


class OpenConnections:
    """Open connections, counted in all and by address, from when they are accepted.

    Attributes:
        limit: Most connections that are served.
        address_limit: Most of one address.
        excess: Peers of connections beyond a limit, whose calls are answered 503.
    """

    def __init__(self, limit: int, address_limit: int) -> None:
        self.limit = limit
        self.address_limit = address_limit
        self.excess = set[Peer]()
        self._num_by_address = Counter[str]()

    def add(self, peer: Peer) -> bool:
        """Count a connection of a host and port; ``False`` if it must be closed without an answer.

        That is so if ``MAX_REFUSED`` connections beyond a limit are open already.
        """
        address = address_group(peer[0])
        num_excess = 1 + max(
            self._num_by_address.total() - self.limit,
            self._num_by_address[address] - self.address_limit,
        )
        if num_excess > 0:
            server_logger.warning("too many connections, in all or from one address")
            if num_excess > MAX_REFUSED:
                return False
            self.excess.add(peer)
        self._num_by_address[address] += 1
        return True

    def remove(self, peer: Peer) -> None:
        """Stop counting a connection."""
        self.excess.discard(peer)
        address = address_group(peer[0])
        self._num_by_address[address] -= 1
        if not self._num_by_address[address]:
            del self._num_by_address[address]


class CountedListener(socket.socket):
    """Listening socket that counts what it accepts.

    Over https the server hears of a connection when its handshake has ended, which some clients
    never begin.
    """

    open_connections: OpenConnections | None = None
    """Connections that are counted; ``None`` before the server starts."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection; close those before it that get no answer.

        Raises ``BlockingIOError`` if there is none now.
        """
        while True:
            accepted, peer = super().accept()
            if self.open_connections is None:
                return accepted, peer
            if self.open_connections.add(peer[:2]):
                counted = _CountedSocket(fileno=accepted.detach())
                counted.on_close = partial(self.open_connections.remove, peer[:2])
                return counted, peer
            accepted.close()


class _CountedSocket(socket.socket):
    """Connection that calls a function when it is closed."""

    on_close: Callable[[], None] | None = None

    def close(self) -> None:
        super().close()
        if self.on_close:
            self.on_close()
            self.on_close = None


class _PlainHeaders(h11.Connection):
    """HTTP of a connection, whose calls have few, short headers that state the body's length once.

    Their bodies have large chunks, or few.

    h11 itself limits only headers that have not come as a whole, and takes a length that is stated
    twice. A proxy that heeds another one than this server takes a part of the body for the next
    call, which may be another client's (RFC 9112, 6.3).
    """

    fault = ""
    """What is wrong with the headers, where it is not what h11 says."""
    is_head = False
    """The call is a HEAD, whose answer has no body."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Read what comes next; raise ``h11.RemoteProtocolError`` if it is no HTTP."""
        if self.their_state is h11.IDLE:
            self._num_bytes = self._num_chunks = 0
            received = self.trailing_data[0]
            self.is_head = received.startswith(b"HEAD ")
            self._check_headers(received)
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._num_bytes += len(event.data)
            self._num_chunks += event.chunk_start
            if self._num_chunks > MAX_SMALL_CHUNKS + self._num_bytes / CHUNK_BYTES:
                self._refuse(f"send the body in chunks of at least {CHUNK_BYTES:,} bytes")
        return event

    def _check_headers(self, received: bytes) -> None:
        end = HEADERS_END.search(received, 0, MAX_HEADER_BYTES)
        head = received[: end.end() if end else MAX_HEADER_BYTES]
        if len(received) > MAX_HEADER_BYTES and not end:
            self._refuse(f"the headers are longer than {MAX_HEADER_BYTES:,} bytes")
        if head.count(b"\n") > MAX_HEADERS + 2:  # the first line, and the empty one
            self._refuse(f"more than {MAX_HEADERS} headers")
        if end and len(b",".join(LENGTHS.findall(head)).split(b",")) > 1:
            self._refuse("expected one length of the body")

    def _refuse(self, fault: str) -> None:
        self.fault = fault
        raise h11.RemoteProtocolError(fault)


class LimitedConnection(H11Protocol):
    """Connection that nobody can hold for ever.

    It is closed if the headers of a call take longer than ``HEADERS_S``, or if the client does not
    read its answers (``WRITE_S``). uvicorn has no options for these: its ``timeout_keep_alive``
    begins after an answer, and ends with the first byte of the next call. uvicorn's own limit
    knows no addresses, and its own answers have another form than all other errors.
    """

    conn: _PlainHeaders

    def __init__(
        self,
        open_connections: OpenConnections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _PlainHeaders(h11.SERVER, MAX_HEADER_BYTES)
        self._excess = open_connections.excess
        self._headers_s: float = HEADERS_S
        self._num_pieces = 0
        self._headers_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(
        self,
        transport: asyncio.Transport,  # type: ignore[override]  # uvicorn narrows it too
    ) -> None:
        """Begin to wait for headers; beyond a limit, only to refuse the call."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=1)  # any byte that the client leaves is known here
        if self.client in self._excess:
            message = "too many connections are open, in all or from this address; try again"
            refusal = ApiError(503, message, retry_after=RETRY_AFTER_S, closes=True)
            self.app = refusal.response()
            self._headers_s = REFUSAL_S
        self._set_headers_timer()

    def data_received(self, data: bytes) -> None:
        """Read a piece of a call; if many were small, let more come before the next is read."""
        cycle = self.cycle
        super().data_received(data)
        if self.cycle is not cycle:
            self._num_pieces = 0
        elif len(data) < CHUNK_BYTES:
            self._num_pieces += 1
            if self._num_pieces > MOST_PIECES:
                self.transport.pause_reading()
                self.loop.call_later(PIECES_S, self._resume_reading)

    def _resume_reading(self) -> None:
        if not self.flow.read_paused:  # otherwise the call has more than it has read
            self.transport.resume_reading()

    def handle_events(self) -> None:
        """Read what has come."""
        super().handle_events()
        self._set_headers_timer()

    def pause_writing(self) -> None:
        """Wait until the client reads, but not for ever."""
        super().pause_writing()
        self._set_write_timer()

    def resume_writing(self) -> None:
        """Resume writing, and stop waiting for the client."""
        super().resume_writing()
        if self._write_timer:
            self._write_timer.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        for timer in (self._headers_timer, self._write_timer):
            if timer:
                timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the form of all other errors."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = ApiError(400, self.conn.fault or msg).response()
            head = h11.Response(
                status_code=400, headers=response.raw_headers, reason=b"Bad Request"
            )
            body = h11.Data(data=bytes(response.body)), h11.EndOfMessage()
            for event in (head, *(() if self.conn.is_head else body)):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        if self.cycle:  # the call is over, as if its client had left
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _set_headers_timer(self) -> None:
        is_waiting = self.cycle is None or self.cycle.response_complete
        if is_waiting and self._headers_timer is None:
            self._headers_timer = self.loop.call_later(self._headers_s, self.transport.close)
        elif not is_waiting and self._headers_timer:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _set_write_timer(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(WRITE_S, self._check_reader, unread)

    def _check_reader(self, unread: int) -> None:
        if self.transport.get_write_buffer_size() > unread - WRITE_BYTES:
            # Otherwise the kernel would go on offering what it holds.
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER
            )
            self.transport.abort()
        else:
            self._set_write_timer()


def limited_config(app: Any, open_connections: OpenConnections, **options: Any) -> Config:
    """Configure an app served over limited connections, with its own log and few headers."""
    return Config(
        app,
        http=partial(LimitedConnection, open_connections),  # type: ignore[arg-type]  # called as a class
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=HEADERS_S,
        **options,
    )
