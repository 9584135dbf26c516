"""What could change a verdict, hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("custos", "peft", "torch", "transformers")


def digest(fields: Mapping[str, Any]) -> str:
    """First 16 hex digits of the SHA-256 of a JSON object with sorted keys."""
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def package_versions() -> dict[str, str]:
    """Versions of the packages whose numerics or templates a verdict depends on."""
    return {name: version(name) for name in PACKAGES}
