"""Random generators that belong to one row each, so that no row depends on the others."""

from __future__ import annotations

import hashlib
from random import Random


def seeded_rng(*key: object) -> Random:
    """Return a generator whose draws depend on the key alone, on every machine and in every run.

    Args:
        key: Names and numbers that say what is drawn: data set, seed, split, number of the row.
    """
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return Random(int.from_bytes(digest[:8], "big"))
