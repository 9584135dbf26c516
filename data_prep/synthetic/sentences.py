"""Parts of sentences that every writer of made rows needs."""

from __future__ import annotations

from collections.abc import Sequence


def join_list(parts: Sequence[str]) -> str:
    """Write ``A, B and C``."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]
