"""Access keys: where they are read, and how calls are told from strangers'."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import math
import os
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response

from judging import CustosError
from serve.calls.context import AccessKey
from serve.calls.errors import ApiError
from serve.gate.connections import address_group

logger = logging.getLogger("custos.serve")

MIN_KEY_CHARS = 16
NAMED_KEY = re.compile(r"([A-Za-z0-9._-]{1,64}):\s*([0-9a-fA-F]{64})")
BARE_KEY = re.compile(r"[!-~]+")
"""Printable ASCII without spaces, as headers hold it."""
VARIABLE = "CUSTOS_API_KEYS"
MAX_TRIES = 60
"""Calls without a known key that an address may make at once; each comes back after an equal share
of ``TRIES_S``."""
TRIES_S = 60.0
MAX_ADDRESSES = 10_000
"""Addresses that are remembered."""
HOW_TO_SEND = (
    "send the header 'Authorization: Bearer KEY'; the commands and clients of custos send the key "
    "that the environment variable CUSTOS_KEY holds"
)


class KnownKeys:
    """The keys that a service knows; a file of keys is read again when it has changed."""

    def __init__(self, keys: Sequence[AccessKey], file: Path | None = None) -> None:
        self.keys = tuple(keys)
        self._file = file
        self._version = _version(file) if file else None

    def find(self, key: str) -> AccessKey | None:
        """Look up a key that a caller sent; ``None`` if it is unknown."""
        if self._file is not None and _version(self._file) != self._version:
            self.read_again()
        digest = _digest(key)
        # Every key is compared, so that the time taken does not tell which of them it is.
        matches = [known for known in self.keys if hmac.compare_digest(digest, known.sha256)]
        # A file of hashes may hold that of a short key.
        return matches[0] if matches and len(key) >= MIN_KEY_CHARS else None

    def read_again(self) -> None:
        """Read the file, if there is one; keep the keys if it cannot be used."""
        if self._file is None:
            return
        self._version = _version(self._file)
        try:
            self.keys = read_key_file(self._file)
        except CustosError as error:
            logger.error("%s; the keys that were read before stay valid", error)
        else:
            names = ", ".join(key.name for key in self.keys)
            logger.info("access keys read again: %s", names)


def read_keys(file: Path | None) -> KnownKeys | None:
    """Read access keys from a file, or from ``CUSTOS_API_KEYS``, divided by commas.

    ``None`` if there are none. Raises ``CustosError`` as :func:`read_key_file`.
    """
    if file:
        return KnownKeys(read_key_file(file), file)
    entries = os.environ.get(VARIABLE, "").split(",")
    keys = parse_keys((entry, VARIABLE) for entry in entries if entry.strip())
    return KnownKeys(keys) if keys else None


def read_key_file(file: Path) -> tuple[AccessKey, ...]:
    """Read the keys of a file: one on each line, below comments that begin with ``#``.

    Raises ``CustosError`` if the file cannot be read or holds no key, or a line is no key.
    """
    option = f"--api-key-file '{file}'"
    try:
        lines = file.read_bytes().decode(errors="surrogateescape").splitlines()
    except OSError:
        raise CustosError(f"{option}: cannot be read") from None
    warn_of_mode(option, file)
    keys = parse_keys(
        (line, f"{option} line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not keys:
        raise CustosError(f"{option}: holds no key")
    return keys


def parse_keys(entries: Iterable[tuple[str, str]]) -> tuple[AccessKey, ...]:
    """Read keys, each ``NAME: SHA-256 of the key`` or the key itself, which is then numbered.

    Each comes with the place that errors name; they never show the entry. Raises ``CustosError`` if
    an entry is no key or is easily guessed, or a name or key occurs twice.
    """
    keys: list[AccessKey] = []
    for number, (entry, location) in enumerate(entries, 1):
        text = entry.strip()
        if named := NAMED_KEY.fullmatch(text):
            keys.append(AccessKey(named[1], bytes.fromhex(named[2])))
        elif len(text) < MIN_KEY_CHARS:
            raise CustosError(
                f"{location}: an access key needs at least {MIN_KEY_CHARS} characters; "
                "make one with: openssl rand -hex 32"
            )
        elif ":" in text or text.startswith("#") or not BARE_KEY.fullmatch(text):
            raise CustosError(
                f"{location}: expected NAME: and the SHA-256 of a key in 64 hex digits, or a key "
                "of printable ASCII without spaces and colons that does not begin with #"
            )
        else:
            keys.append(AccessKey(f"key-{number}", _digest(text)))
    for value, count in Counter(key.name for key in keys).items():
        if count > 1:
            raise CustosError(f"the name '{value}' of an access key occurs twice")
    if len({key.sha256 for key in keys}) < len(keys):
        raise CustosError("an access key occurs twice")
    return tuple(keys)


def warn_of_mode(option: str, file: Path) -> None:
    """Log a warning if other users of this machine can read or change a file of secrets."""
    if file.stat().st_mode & 0o077:
        logger.warning("%s: other users may open it; chmod 600 '%s'", option, file)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def _version(file: Path) -> tuple[int, ...] | None:
    """Read what changes when a file does; ``None`` if it is not there.

    The time of the last change of its status cannot be set back, unlike that of its content.
    """
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


class WrongKeys:
    """Answers to calls without a known key: 401, or 429 to an address that has made many.

    A known key is always let in. Otherwise one client could shut out all that share its address,
    as behind a proxy.
    """

    def __init__(self) -> None:
        # When an address has all its tries again: the one that called last comes last.
        self._full_at = OrderedDict[str, float]()

    def answer(self, host: str, fault: str) -> Response:
        """Answer a call from a host, and say what is wrong with its key."""
        address = address_group(host)
        now = time.monotonic()
        cost = TRIES_S / MAX_TRIES
        full_at = max(now, self._full_at.pop(address, now))
        is_refused = full_at + cost > now + TRIES_S
        self._full_at[address] = full_at if is_refused else full_at + cost
        if len(self._full_at) > MAX_ADDRESSES:
            self._full_at.popitem(last=False)
        if is_refused:
            message = f"too many calls without a known key from this address: {HOW_TO_SEND}"
            return ApiError(429, message, retry_after=math.ceil(cost), closes=True).response()
        response = ApiError(401, f"{fault}: {HOW_TO_SEND}").response()
        # In two headers, as Chromium does not find Basic after another scheme.
        response.headers["WWW-Authenticate"] = 'Basic realm="custos"'
        response.headers.append("WWW-Authenticate", "Bearer")
        return response


def key_in(headers: Headers, *, with_password: bool) -> str:
    """Read the key that a call sends: ``Authorization: Bearer KEY``; empty if none.

    ``with_password`` takes a key as the password of HTTP Basic too, for which browsers ask.
    """
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic" and with_password:
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return ""
