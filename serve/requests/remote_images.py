"""Pictures that a request names by address, fetched from the few hosts that the operator allows."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from urllib.parse import SplitResult, urlsplit

import httpx

from judging import CustosError
from serve.call_context import call_bytes, caller_name
from serve.errors import ApiError
from serve.pictures.decode import FORMAT_NAMES
from serve.turns import Turns

SECONDS = 10.0
"""Longest silence of a host."""
CALL_SECONDS = 30.0
"""Longest time for all pictures of a call, from the first look-up to the last byte."""
CALLS_AT_ONCE = 16
"""Calls whose pictures are fetched at the same time, half of them of one key. The others wait."""
MEDIA_TYPES = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp")
OPEN_IPV6 = ipaddress.IPv6Network("2000::/3")
"""The only IPv6 addresses that are given out to the open internet. Among the others are site-local
ones, and those that hold an IPv4 address, which may be one of an inner network (RFC 6052)."""
RESERVED_IPV4 = [ipaddress.IPv4Network(net) for net in ("192.0.0.0/24", "192.88.99.0/24")]
"""Ranges for protocols, of which Python's ``is_global`` knows only parts."""

Resolve = Callable[[str, int], Sequence[str]]


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host name."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(socket_address[0]) for *_, socket_address in infos]


def is_public(address: str) -> bool:
    """Return whether an address is one of the open internet, and does not hide another."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        is_open = ip in OPEN_IPV6 and not (ip.sixtofour or ip.teredo)
    else:
        is_open = not any(ip in net for net in RESERVED_IPV4)
    return is_open and ip.is_global and not (ip.is_multicast or ip.is_reserved)


@dataclass
class _Budget:
    """The bytes that the pictures of a call may still take."""

    num_bytes: int

    def spend(self, num_bytes: int, field: str) -> None:
        """Take from the budget.

        Raises:
            ApiError: 422 if it is used up.
        """
        self.num_bytes -= num_bytes
        if self.num_bytes < 0:
            raise ApiError(422, "the call's pictures are too large", field)


class RemoteImages:
    """Fetches pictures over https from allowed hosts.

    The name of a host is resolved once. All its addresses must be public, and the connection goes
    to the one that was checked. Redirects are not followed.

    Args:
        hosts: ``NAME`` or ``NAME:PORT``.
        max_bytes: Most bytes of all pictures of a call.
        resolve: From name and port to addresses.
        is_allowed: Says whether an address may be connected to.
        trust: Certificates to trust.

    Raises:
        CustosError: If a host is an address, or has something beside a name and a port.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        max_bytes: int,
        *,
        resolve: Resolve = resolve,
        is_allowed: Callable[[str], bool] = is_public,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.endpoints = {_allowed_endpoint(host) for host in hosts}
        self.max_bytes = max_bytes
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._trust = trust or ssl.create_default_context()
        self._turns = Turns(CALLS_AT_ONCE, CALLS_AT_ONCE // 2)
        # Threads of its own, as a look-up cannot be ended and may take longer than a call.
        self._resolvers = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="resolver")

    async def fetch_all(self, groups: Sequence[tuple[Sequence[str], str]]) -> list[tuple[str, ...]]:
        """Replace https addresses by data URLs; none is resolved unless all are allowed.

        Args:
            groups: The pictures of each request or message of a call, and their path in the body.

        Raises:
            ApiError: 422 naming the path.
        """
        if not any(map(_is_remote, chain.from_iterable(images for images, _ in groups))):
            return [tuple(images) for images, _ in groups]
        for images, field in groups:
            for source in images:
                if _is_remote(source) and _split(source)[1] not in self.endpoints:
                    raise ApiError(422, "pictures are not fetched from this address", field)
        async with self._turns.slot(caller_name()):
            return await self._fetch_all(groups)

    async def _fetch_all(
        self, groups: Sequence[tuple[Sequence[str], str]]
    ) -> list[tuple[str, ...]]:
        budget = _Budget(self.max_bytes)
        fetched: list[tuple[str, ...]] = []
        field = ""
        try:
            async with asyncio.timeout(CALL_SECONDS), self._client() as client:
                for images, field in groups:
                    sources = [
                        await self._fetch(client, source, field, budget)
                        if _is_remote(source)
                        else source
                        for source in images
                    ]
                    fetched.append(tuple(sources))
        except TimeoutError:
            raise ApiError(422, "the call's pictures are too slow to come", field) from None
        return fetched

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=self._trust,
            timeout=SECONDS,
            # Hosts may share an address: a connection belongs to one host and is not used again.
            limits=httpx.Limits(max_keepalive_connections=0),
            follow_redirects=False,
            trust_env=False,
        )

    async def _fetch(self, client: httpx.AsyncClient, url: str, field: str, budget: _Budget) -> str:
        parts, endpoint = _split(url)
        assert endpoint
        host, port = endpoint
        failure = ApiError(422, "the picture could not be fetched", field)
        try:
            addresses = await asyncio.get_running_loop().run_in_executor(
                self._resolvers, self._resolve, host, port
            )
            if not addresses or not all(map(self._is_allowed, addresses)):
                raise failure
            address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
            target = parts._replace(netloc=f"{address}:{port}", fragment="")
            async with client.stream(
                "GET",
                target.geturl(),
                headers={"Host": parts.netloc, "Accept-Encoding": "identity"},
                extensions={"sni_hostname": host},
            ) as response:
                return await self._data_url(response, field, budget)
        except (OSError, httpx.HTTPError, httpx.InvalidURL, UnicodeError):
            raise failure from None

    async def _data_url(self, response: httpx.Response, field: str, budget: _Budget) -> str:
        if response.is_redirect:
            raise ApiError(422, "the picture has moved; redirects are not followed", field)
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        is_encoded = response.headers.get("Content-Encoding", "identity") != "identity"
        if response.status_code != 200 or media_type not in MEDIA_TYPES or is_encoded:
            raise ApiError(422, f"there is no {FORMAT_NAMES} picture at this address", field)
        content = bytearray()
        num_held = call_bytes.get()
        async for chunk in response.aiter_raw():
            content += chunk
            budget.spend(len(chunk), field)
            if num_held:
                num_held.take(4 * len(chunk) // 3)  # as base64
        return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _allowed_endpoint(host: str) -> tuple[str, int]:
    parts, endpoint = _split(f"https://{host}")
    if endpoint is None or parts.netloc != host or parts.path or _is_address(endpoint[0]):
        raise CustosError(f"--image-host '{host}': expected a host name, or NAME:PORT")
    return endpoint


def _split(url: str) -> tuple[SplitResult, tuple[str, int] | None]:
    """Return the parts of a URL, and its host and port; ``None`` if it has none, or a user."""
    try:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc:
            return parts, None
        return parts, (parts.hostname.rstrip("."), parts.port or 443)
    except ValueError:
        return urlsplit(""), None


def _is_remote(source: str) -> bool:
    return source.startswith("https:")


def _is_address(host: str) -> bool:
    """Return whether a host is an IP address, be it dotted, decimal, hexadecimal or IPv6."""
    try:
        socket.inet_aton(host)
        return True
    except OSError:
        return ":" in host
