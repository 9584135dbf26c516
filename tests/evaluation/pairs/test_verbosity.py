from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.pairs.agreement import PAIR_LABELS, verbosity_effect
from tests.evaluation.pairs.made_up import OTHER, judged, pair

label = st.sampled_from(PAIR_LABELS)


def test_verbosity_by_hand() -> None:
    # People, judge, lengths of A and B.
    rows = [
        ("A", "B", 2, 9),  # people shorter, judge longer
        ("B", "B", 9, 2),  # both shorter
        ("A", "None", 2, 9),  # people shorter, judge tie
        ("A", "B", 9, 2),  # people longer, judge shorter
        ("B", "B", 2, 9),  # both longer
        ("A", "A", 9, 2),  # both longer
        ("None", "A", 9, 2),  # people tie, judge longer
        ("A", "B", 5, 5),  # same length
    ]
    examples = [
        pair(human, str(i), a="x" * a + " ", b="y" * b) for i, (human, _, a, b) in enumerate(rows)
    ]
    verdicts = [judged(row[1], str(i)) for i, row in enumerate(rows)]
    found = verbosity_effect(examples, verdicts)
    summary = {name: (row["value"], row["n"]) for name, row in found.items()}
    assert summary == {
        "preference": (pytest.approx((4.5 - 3.5) / 7), 7),
        "longer_against_people": (pytest.approx(1 / 3), 3),
        "shorter_against_people": (pytest.approx(1 / 3), 3),
        "difference": (pytest.approx(0), 6),
    }


def test_a_judge_that_loves_length_is_found_out() -> None:
    rng = np.random.default_rng(0)
    examples, verdicts = [], []
    for i in range(400):
        a, b = rng.choice(50, size=2, replace=False) + 1
        examples.append(pair("A" if rng.random() < 0.5 else "B", str(i), a="x" * a, b="y" * b))
        longer = "A" if a > b else "B"
        verdicts.append(judged(longer if rng.random() < 0.3 else examples[-1].label, str(i)))
    found = verbosity_effect(examples, verdicts)
    assert found["preference"]["low"] > 0.08
    assert found["difference"]["low"] > 0.2
    assert found["shorter_against_people"]["value"] == 0
    fair = verbosity_effect(examples, [judged(x.label, x.id) for x in examples])
    assert fair["preference"]["value"] == fair["difference"]["value"] == 0


@given(st.lists(st.tuples(label, label, st.integers(1, 9), st.integers(1, 9)), min_size=1))
def test_verbosity_does_not_care_which_side_is_long(
    rows: list[tuple[str, str, int, int]],
) -> None:
    def measured(rows: list[tuple[str, str, int, int]]) -> list[float]:
        examples = [pair(h, str(i), a="x" * a, b="y" * b) for i, (h, _, a, b) in enumerate(rows)]
        verdicts = [judged(row[1], str(i)) for i, row in enumerate(rows)]
        found = verbosity_effect(examples, verdicts)
        return [row["value"] for row in found.values()]

    turned = [(OTHER[human], OTHER[judge], b, a) for human, judge, a, b in rows]
    assert measured(turned) == pytest.approx(measured(rows), nan_ok=True)
