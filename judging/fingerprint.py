"""Hashes of what could change a verdict: settings, files, pictures, package versions."""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from judging.errors import system_errors_at

PACKAGES = ("custos", "math-verify", "peft", "torch", "transformers")


def digest(fields: Mapping[str, Any]) -> str:
    """Compute the first 16 hex digits of the SHA-256 of a JSON object with sorted keys."""
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with system_errors_at(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def picture_sha256(source: str) -> str:
    """Return the SHA-256 of a picture's content, in hex, the same for a data URL and its file.

    A web address is returned as it is. What cannot be read gives ``unreadable``: the function that
    opens the picture later reports why.
    """
    if source.startswith(("http://", "https://")):
        return source
    try:
        if source.startswith("data:"):
            content = base64.b64decode(source.partition(",")[2], validate=True)
            return hashlib.sha256(content).hexdigest()
        # A device or a pipe may have no end.
        return file_sha256(Path(source)) if Path(source).is_file() else "unreadable"
    except (OSError, ValueError):
        return "unreadable"


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages that a verdict depends on: numerics, templates, rules."""
    return {name: version(name) for name in PACKAGES}
