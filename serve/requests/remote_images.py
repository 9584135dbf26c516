"""Pictures by address, from the few hosts that the operator allows."""

from __future__ import annotations

import base64
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import httpx

from judging import CustosError
from serve.call_context import call_bytes
from serve.errors import ApiError

SECONDS = 10.0
"""Longest silence of a host."""
CALL_SECONDS = 30.0
"""Longest that all pictures of a call may take."""
TYPES = ("image/jpeg", "image/png", "image/webp")
HIDING_IPV4 = [ipaddress.ip_network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")]
"""IPv6 networks whose addresses hold one of IPv4, which may be an inner one."""

Resolve = Callable[[str, int], Sequence[str]]


def resolve(host: str, port: int) -> list[str]:
    """Addresses of a host name."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet, in no disguise."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and (
        ip.ipv4_mapped or ip.sixtofour or ip.teredo or any(ip in net for net in HIDING_IPV4)
    ):
        return False
    return ip.is_global and not ip.is_multicast


@dataclass
class _Budget:
    """What the pictures of a call may still take."""

    num_bytes: int
    until: float

    def spend(self, num_bytes: int, field: str) -> None:
        """Take from it.

        Raises:
            ApiError: 422 if it is used up.
        """
        self.num_bytes -= num_bytes
        if self.num_bytes < 0 or time.monotonic() > self.until:
            raise ApiError(422, "the call's pictures are too large, or too slow to come", field)


class RemoteImages:
    """Fetches pictures over https from allowed hosts.

    A host's name is resolved once; all its addresses must be public, and the connection goes to the
    one that was checked. Redirects are not followed.

    Args:
        hosts: ``NAME`` or ``NAME:PORT``.
        max_bytes: Most bytes of all pictures of a call.
        resolve: From name and port to addresses.
        is_allowed: Whether an address may be connected to.
        trust: Certificates to trust.

    Raises:
        CustosError: If a host is an address or has something beside a name and a port.
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
        self.places = {_place(host) for host in hosts}
        self.max_bytes = max_bytes
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._client = httpx.Client(
            verify=trust or ssl.create_default_context(),
            timeout=SECONDS,
            # Hosts may share an address: a connection is of one host and is not used again.
            limits=httpx.Limits(max_keepalive_connections=0),
            follow_redirects=False,
            trust_env=False,
        )

    def fetched(self, pictures: Sequence[tuple[Sequence[str], str]]) -> list[tuple[str, ...]]:
        """Replace https addresses by data URLs; none is looked up unless all are allowed.

        Args:
            pictures: Groups of a call's pictures, each with its path in the body.

        Raises:
            ApiError: 422 naming the group.
        """
        for images, field in pictures:
            for source in images:
                if _is_remote(source) and _parts(source)[1] not in self.places:
                    raise ApiError(422, "pictures are not fetched from this address", field)
        budget = _Budget(self.max_bytes, time.monotonic() + CALL_SECONDS)
        return [
            tuple(
                self._fetch(source, field, budget) if _is_remote(source) else source
                for source in images
            )
            for images, field in pictures
        ]

    def _fetch(self, address: str, field: str, budget: _Budget) -> str:
        parts, place = _parts(address)
        assert place
        host, port = place
        budget.spend(0, field)
        failed = ApiError(422, "the picture could not be fetched", field)
        try:
            found = self._resolve(host, port)
            if not found or not all(map(self._is_allowed, found)):
                raise failed
            pinned = f"[{found[0]}]" if ":" in found[0] else found[0]
            target = parts._replace(netloc=f"{pinned}:{port}", fragment="")
            with self._client.stream(
                "GET",
                target.geturl(),
                headers={"Host": parts.netloc},
                extensions={"sni_hostname": host},
            ) as answer:
                return self._data_url(answer, field, budget)
        except (OSError, httpx.HTTPError, httpx.InvalidURL, UnicodeError):
            raise failed from None

    def _data_url(self, answer: httpx.Response, field: str, budget: _Budget) -> str:
        if answer.is_redirect:
            raise ApiError(422, "the picture has moved; redirects are not followed", field)
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if answer.status_code != 200 or kind not in TYPES:
            raise ApiError(422, "there is no JPEG, PNG or WebP picture at this address", field)
        content = bytearray()
        held = call_bytes.get()
        for chunk in answer.iter_bytes():
            content += chunk
            budget.spend(len(chunk), field)
            if held:
                held.take(4 * len(chunk) // 3)  # as base64
        return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _place(host: str) -> tuple[str, int]:
    parts, place = _parts(f"https://{host}")
    if place is None or parts.netloc != host or parts.path or _is_address(place[0]):
        raise CustosError(f"--image-host '{host}': expected a host name, or NAME:PORT")
    return place


def _parts(address: str) -> tuple[SplitResult, tuple[str, int] | None]:
    """An address and the host and port it names; ``None`` where it names none, or a user too."""
    try:
        parts = urlsplit(address)
        if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc:
            return parts, None
        return parts, (parts.hostname.rstrip("."), parts.port or 443)
    except ValueError:
        return urlsplit(""), None


def _is_remote(source: str) -> bool:
    return source.startswith("https:")


def _is_address(host: str) -> bool:
    """Whether a host is an IP address in any spelling: dotted, decimal, hexadecimal, IPv6."""
    try:
        socket.inet_aton(host)
        return True
    except OSError:
        return ":" in host
