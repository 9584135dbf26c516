"""Pages of the site that are files of the repository's root."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

LINK = re.compile(r"(?<=\]\()docs/")


def changelog_page() -> str:
    """Return ``CHANGELOG.md`` with links that start in ``docs/``."""
    return _from_docs("CHANGELOG.md")


def contributing_page() -> str:
    """Return ``CONTRIBUTING.md`` with links that start in ``docs/``."""
    return _from_docs("CONTRIBUTING.md")


def security_page() -> str:
    """Return ``SECURITY.md`` with links that start in ``docs/``."""
    return _from_docs("SECURITY.md")


def _from_docs(name: str) -> str:
    return LINK.sub("", (ROOT / name).read_text(encoding="utf-8"))
