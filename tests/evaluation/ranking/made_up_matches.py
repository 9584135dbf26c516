"""Made-up matches between models for the tests of this folder."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from evaluation.intervals import Floats

TURNED = {"A": "B", "B": "A", "tie": "tie"}

match_rows = st.lists(
    st.tuples(
        st.sampled_from("pqrs"), st.sampled_from("pqrs"), st.sampled_from(tuple(TURNED))
    ).filter(lambda row: row[0] != row[1]),
    min_size=1,
    max_size=40,
)
Rows = list[tuple[str, str, str]]


def played(
    strengths: Floats, n: int, seed: int = 0, ties: float = 0.1
) -> list[tuple[str, str, str]]:
    """Matches between players of known log-strengths; ties fall anywhere."""
    rng = np.random.default_rng(seed)
    models = len(strengths)
    first = rng.integers(models, size=n)
    second = (first + 1 + rng.integers(models - 1, size=n)) % models
    won = rng.random(n) < 1 / (1 + np.exp(strengths[second] - strengths[first]))
    outcome = np.where(rng.random(n) < ties, "tie", np.where(won, "A", "B"))
    return [
        (f"m{a:02}", f"m{b:02}", str(o)) for a, b, o in zip(first, second, outcome, strict=True)
    ]
