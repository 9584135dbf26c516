"""Pictures as they come in: fetched from the few hosts that the operator allows, and measured.

Processes of their own decode them.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ipaddress
import os
import re
import socket
import ssl
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

import httpx

from judging import CustosError
from judging.errors import FieldError
from judging.files.pictures import EXIF_FAULT, PictureSize, has_too_many_exif_parts
from judging.models.devices import num_cores
from serve.calls.context import call_bytes, require_open
from serve.calls.errors import ApiError
from serve.calls.limits import Limits
from serve.calls.waiting import Turns
from serve.pictures import decode
from serve.pictures.decode import FORMAT_NAMES, FORMATS

DATA_URL = re.compile(r"data:(?:image/[\w.+-]{1,100}|\w{1,100}/octet-stream);base64,", re.ASCII)
"""How a picture in the one form of requests begins. Its kind is seen in its content: many programs
name it by the ending of a file, as ``image/jpg``."""
UNREADABLE = f"not a readable {FORMAT_NAMES} picture; save others, such as TIFF or AVIF, as PNG"
JPEG_SCAN = b"\xff\xda"
MOST_READS = 20_000
"""Most pieces in which a header is read: a few hundred where nobody means harm. Each byte of a JPEG
can be one, and three million take 2.5 s."""
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


class _Header(io.BytesIO):
    """Content of a picture, of which at most ``MOST_READS`` pieces may be read."""

    num_reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.num_reads += 1
        if self.num_reads > MOST_READS:
            raise OSError("the header has too many pieces")
        return super().read(size)


def measure(
    groups: Sequence[Sequence[str]], fields: Sequence[str], limits: Limits
) -> list[tuple[PictureSize, ...]]:
    """Read the sizes of a call's pictures from their headers; nothing is decoded.

    There is one path in the body for each group: the pictures of a request or message. Raises
    ``ApiError`` 422 as :func:`picture_size`, or if all have too many pixels together.
    """
    sizes: list[tuple[PictureSize, ...]] = []
    pixels = 0
    for images, field in zip(groups, fields, strict=True):
        sizes.append(tuple(picture_size(source, field, limits) for source in images))
        pixels += sum(size.pixels for size in sizes[-1])
        if pixels > limits.call_pixels:
            raise ApiError(422, f"more than {limits.call_pixels:,} pixels in one call", field)
    return sizes


def picture_size(source: str, field: str, limits: Limits) -> PictureSize:
    """Read the size of a picture, upright, from its header.

    The source is never opened as a file and never fetched. Raises ``ApiError`` 422, which names the
    field and shows nothing of the content, if it is not a data URL, cannot be read, or has too many
    pixels.
    """
    from PIL import Image

    from judging.files.rgb import upright_size

    require_open()
    prefix = DATA_URL.match(source)
    if prefix is None:
        raise ApiError(
            422,
            "only data URLs are taken: data:image/jpeg;base64,... (or png, webp, gif, bmp); "
            "files are not read and addresses are not fetched",
            field,
        )
    fault = ""
    try:
        content = base64.b64decode(source[prefix.end() :], validate=True)
        if has_too_many_exif_parts(io.BytesIO(content)):
            raise ApiError(422, EXIF_FAULT, field)
        # Reads no more than the header.
        with Image.open(_Header(content), formats=FORMATS) as picture:
            size = PictureSize(*upright_size(picture))
            is_jpeg = picture.format in ("JPEG", "MPO")  # MPO: a JPEG that names further pictures
        if size.pixels > limits.image_pixels:
            fault = f"the picture has more than {limits.image_pixels:,} pixels"
        # Every scan goes over all pixels again. Inside the data of a scan its marker cannot occur.
        if is_jpeg and content.count(JPEG_SCAN) > limits.picture_scans:
            fault = f"the picture has more than {limits.picture_scans} scans"
    except (OSError, ValueError, SyntaxError):
        fault = UNREADABLE
    except Image.DecompressionBombError:
        fault = f"the picture has more than {limits.image_pixels:,} pixels"
    if fault:
        raise ApiError(422, fault, field)
    return size


def resolve(host: str, port: int) -> list[str]:
    """Look up the addresses of a host name."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(socket_address[0]) for *_, socket_address in infos]


def is_public(address: str) -> bool:
    """Tell whether an address is one of the open internet, and does not hide another."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        is_open = ip in OPEN_IPV6 and not (ip.sixtofour or ip.teredo)
    else:
        is_open = not any(ip in net for net in RESERVED_IPV4)
    return is_open and ip.is_global and not (ip.is_multicast or ip.is_reserved)


class RemoteImages:
    """Fetches pictures over https from allowed hosts, each ``NAME`` or ``NAME:PORT``.

    The name of a host is resolved once. All its addresses must be public, and the connection goes
    to the one that was checked. Redirects are not followed. All pictures of a call have at most
    ``max_bytes``. Raises ``CustosError`` if a host is an address, or has something beside a name
    and a port.
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

        Each group holds the pictures of a request or message, and their path in the body, which
        ``ApiError`` 422 names.
        """
        if not any(_is_remote(source) for images, _ in groups for source in images):
            return [tuple(images) for images, _ in groups]
        for images, field in groups:
            for source in images:
                if _is_remote(source) and _split(source)[1] not in self.endpoints:
                    raise ApiError(422, "pictures are not fetched from this address", field)
        fetched: list[tuple[str, ...]] = []
        field, num_bytes = "", 0
        client = httpx.AsyncClient(
            verify=self._trust,
            timeout=SECONDS,
            # Hosts may share an address: a connection belongs to one host and is not used again.
            limits=httpx.Limits(max_keepalive_connections=0),
            follow_redirects=False,
            trust_env=False,
        )

        def spend(part: int) -> None:
            nonlocal num_bytes
            num_bytes += part
            if num_bytes > self.max_bytes:
                raise ApiError(422, "the call's pictures are too large", field)

        async with self._turns.slot():
            try:
                async with asyncio.timeout(CALL_SECONDS), client:
                    for images, field in groups:
                        sources = [
                            await self._fetch(client, source, field, spend)
                            if _is_remote(source)
                            else source
                            for source in images
                        ]
                        fetched.append(tuple(sources))
            except TimeoutError:
                raise ApiError(422, "the call's pictures are too slow to come", field) from None
        return fetched

    async def _fetch(
        self, client: httpx.AsyncClient, url: str, field: str, spend: Callable[[int], None]
    ) -> str:
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
                return await _data_url(response, field, spend)
        except (OSError, httpx.HTTPError, httpx.InvalidURL, UnicodeError):
            raise failure from None


async def _data_url(response: httpx.Response, field: str, spend: Callable[[int], None]) -> str:
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
        spend(len(chunk))
        if num_held:
            num_held.take(4 * len(chunk) // 3)  # as base64
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _allowed_endpoint(host: str) -> tuple[str, int]:
    parts, endpoint = _split(f"https://{host}")
    if endpoint is None or parts.netloc != host or parts.path or _is_address(endpoint[0]):
        raise CustosError(f"--image-host '{host}': expected a host name, or NAME:PORT")
    return endpoint


def _split(url: str) -> tuple[SplitResult, tuple[str, int] | None]:
    """Split a URL, and give its host and port; ``None`` if it has none, or a user."""
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
    """Tell whether a host is an IP address, be it dotted, decimal, hexadecimal or IPv6."""
    try:
        socket.inet_aton(host)
        return True
    except OSError:
        return ":" in host


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
                await _end(process)

    async def close(self) -> None:
        """End the processes that wait for a picture; others end with the calls they work for."""
        while self._idle:
            await _end(self._idle.pop())

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", decode.__file__),
            stdin=PIPE,
            stdout=PIPE,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        )


async def _end(process: Process) -> None:
    """Kill a process, and read what it wrote: while some is unread, asyncio sees no end of it."""
    with suppress(ProcessLookupError):  # it has ended by itself
        process.kill()
    await process.communicate()
