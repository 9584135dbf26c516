"""Access keys: who may call, and the file that names them."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from judging import CustosError

logger = logging.getLogger("custos.serve")

MIN_KEY_CHARS = 16
NAMED_KEY = re.compile(r"([A-Za-z0-9._-]{1,64}):\s*([0-9a-fA-F]{64})")
BARE_KEY = re.compile(r"[!-~]+")
"""Printable ASCII without spaces, as headers hold it."""
VARIABLE = "CUSTOS_API_KEYS"


@dataclass(frozen=True)
class AccessKey:
    """Name and hash of a key. The key itself is not kept."""

    name: str
    """Shown in the log and in metrics."""
    sha256: bytes


class KnownKeys:
    """The keys that a service knows; a file of keys is read again when it has changed.

    Args:
        keys: The keys.
        file: The file that they come from, if any.
    """

    def __init__(self, keys: Sequence[AccessKey], file: Path | None = None) -> None:
        self.keys = tuple(keys)
        self._file = file
        self._version = _version(file) if file else None

    @classmethod
    def of_file(cls, file: Path) -> KnownKeys:
        """Read a file.

        Raises:
            CustosError: As :func:`read_key_file`.
        """
        return cls(read_key_file(file), file)

    def find(self, key: str) -> AccessKey | None:
        """Return what is known of a key that a caller sent; ``None`` if it is unknown."""
        self._read_again_if_changed()
        digest = _digest(key)
        # Every key is compared, so that the time taken does not tell which of them it is.
        matches = [known for known in self.keys if hmac.compare_digest(digest, known.sha256)]
        # A file of hashes may hold that of a short key.
        return matches[0] if matches and len(key) >= MIN_KEY_CHARS else None

    def _read_again_if_changed(self) -> None:
        if self._file is not None and _version(self._file) != self._version:
            self.read_again()

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

    Returns:
        The keys; ``None`` if there are none.

    Raises:
        CustosError: As :func:`read_key_file`.
    """
    if file:
        return KnownKeys.of_file(file)
    entries = os.environ.get(VARIABLE, "").split(",")
    keys = parse_keys((entry, VARIABLE) for entry in entries if entry.strip())
    return KnownKeys(keys) if keys else None


def read_key_file(file: Path) -> tuple[AccessKey, ...]:
    """Read the keys of a file: one on each line, below comments that begin with ``#``.

    Raises:
        CustosError: If the file cannot be read or holds no key, or a line is no key.
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

    Args:
        entries: Each with how errors name it. They never show the entry.

    Raises:
        CustosError: If an entry is no key or is easily guessed, or a name or key occurs twice.
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
    """Return what changes when a file does; ``None`` if it is not there.

    The time of the last change of its status cannot be set back, unlike that of its content.
    """
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino
