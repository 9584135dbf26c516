"""Pictures by address, from the few hosts that the operator allows."""

from __future__ import annotations

import base64
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from urllib.parse import SplitResult, urlsplit

import httpx

from judging import CustosError
from serve.errors import ApiError

SECONDS = 10.0
TYPES = ("image/jpeg", "image/png", "image/webp")
NAT64 = ipaddress.ip_network("64:ff9b::/96")

Resolve = Callable[[str, int], Sequence[str]]


def resolve(host: str, port: int) -> list[str]:
    """Addresses of a host name."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet, in no disguise."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and (
        ip.ipv4_mapped or ip.sixtofour or ip.teredo or ip in NAT64
    ):
        return False
    return ip.is_global and not ip.is_multicast


class RemoteImages:
    """Fetches pictures over https from allowed hosts.

    A host's name is resolved once; all its addresses must be public, and the connection goes to the
    one that was checked. Redirects are not followed.

    Args:
        hosts: ``NAME`` or ``NAME:PORT``.
        max_bytes: Most bytes of one picture.
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

    def fetched(self, images: Sequence[str], field: str) -> tuple[str, ...]:
        """Pictures with https addresses replaced by data URLs.

        Raises:
            ApiError: 422 naming the field.
        """
        return tuple(
            self._fetch(source, field) if source.startswith("https:") else source
            for source in images
        )

    def _fetch(self, address: str, field: str) -> str:
        parts, place = _parts(address)
        if place not in self.places:
            raise ApiError(422, "pictures are not fetched from this address", field)
        host, port = place
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
                return self._data_url(answer, field)
        except (OSError, httpx.HTTPError, httpx.InvalidURL, UnicodeError):
            raise failed from None

    def _data_url(self, answer: httpx.Response, field: str) -> str:
        if answer.is_redirect:
            raise ApiError(422, "the picture has moved; redirects are not followed", field)
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if answer.status_code != 200 or kind not in TYPES:
            raise ApiError(422, "there is no JPEG, PNG or WebP picture at this address", field)
        until = time.monotonic() + SECONDS
        content = bytearray()
        for chunk in answer.iter_bytes():
            content += chunk
            if len(content) > self.max_bytes or time.monotonic() > until:
                raise ApiError(422, "the picture is too large, or too slow to come", field)
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


def _is_address(host: str) -> bool:
    """Whether a host is an IP address in any spelling: dotted, decimal, hexadecimal, IPv6."""
    try:
        socket.inet_aton(host)
        return True
    except OSError:
        return ":" in host
