"""The rules on answers that are easy to misread: right answers stay right."""

from __future__ import annotations

from collections import Counter

import pytest
from scipy.stats import binomtest

from tests.benchmarks.adversarial_answers import AdversarialAnswer, adversarial_answers

Reading = tuple[AdversarialAnswer, bool | None]

MAX_FALSE_DECISIONS = 0.005
"""Upper end of the interval: the corpus must be large enough to say so."""


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    return [(answer, answer.by_rule()) for answer in adversarial_answers()]


def test_rules_never_decide_falsely(readings: list[Reading]) -> None:
    """Print the counts (``pytest -s``), which docs/fidelity.md states."""
    corpus = [answer for answer, _ in readings]
    forms = Counter(answer.form for answer in corpus)
    assert len(corpus) >= 400
    assert len(forms) >= 20
    assert min(forms.values()) >= 10
    assert {answer.is_right for answer in corpus} == {True, False}

    num_decided = sum(reading is not None for _, reading in readings)
    false = [a.response for a, reading in readings if reading not in (None, a.is_right)]
    interval = binomtest(len(false), len(corpus)).proportion_ci(method="wilson")
    counts = (
        f"{len(corpus)} answers in {len(forms)} forms; rules decide {num_decided}, falsely "
        f"{len(false)}: {len(false) / len(corpus):.4f} "
        f"[{interval.low:.4f}, {interval.high:.4f}] of all"
    )
    print(counts)  # noqa: T201 - the figures are wanted
    assert false == []
    assert interval.high <= MAX_FALSE_DECISIONS


def test_plain_answers_are_decided(readings: list[Reading]) -> None:
    """Rules that leave everything to the judge would pass the test above."""
    plain = [reading for answer, reading in readings if answer.form.startswith("plain")]
    assert sum(reading is not None for reading in plain) >= 0.95 * len(plain)
