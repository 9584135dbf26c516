"""How often intervals and tests keep their promises, on drawn benchmarks and rows."""

from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest

from evaluation.correction.scores import Rate
from evaluation.estimate import lowest_difference, share
from evaluation.intervals import sign_flip_p
from tests.evaluation.drawn import Setting, alike, draw, draw_groups


def held(rates: Iterable[Rate], truth: float) -> float:
    return float(np.mean([rate.low <= truth <= rate.high for rate in rates]))


def test_corrected_intervals_hold_the_truth_and_are_no_wider_than_the_labels() -> None:
    rng, coverage, wider = np.random.default_rng(11), dict[str, list[float]](), []
    for accuracy, rate, labels in product((0.6, 0.8, 0.95), (0.1, 0.5, 0.9), (50, 200, 500)):
        found = list(draw(Setting(accuracy, rate, labels), 100, rng))
        by_method = {"ppi": [f.corrected for f in found], "labels": [f.labelled for f in found]}
        for name, rates in by_method.items():
            coverage.setdefault(name, []).append(held(rates, rate))
        width, alone = (np.mean([r.high - r.low for r in rates]) for rates in by_method.values())
        wider.append(width / alone)
    for name, of_settings in coverage.items():
        assert 0.93 <= np.mean(of_settings) <= 0.98, name
    # 100 draws of a coverage of .93 fall below .85 once in a thousand settings.
    assert min(coverage["ppi"]) > 0.84
    assert max(wider) <= 1.02 and min(wider) < 0.6


def test_groups_need_to_be_known() -> None:
    """Whole groups of ten labelled: as independent items they would be far too sure."""
    for are_known in (True, False):
        rng = np.random.default_rng(1)
        found = draw_groups(Setting(0.9, 0.5, 500), 10, 300, rng, are_known=are_known)
        share_held = held((each.corrected for each in found), 0.5)
        assert share_held > 0.91 if are_known else share_held < 0.85


@pytest.mark.parametrize(("questions", "rows"), [(89, 5), (20, 10)])
def test_promises_on_rows_that_share_questions(questions: int, rows: int) -> None:
    """Equal judges seldom differ, a worse one seldom passes, and an accuracy is held."""
    rng, clusters = np.random.default_rng(5), np.repeat(np.arange(questions), rows)
    differs, passes, is_held = list[bool](), list[bool](), list[bool]()
    for _ in range(150):
        drawn = alike(clusters, 0.3, rng)
        equal = np.select([drawn < 0.08, drawn > 0.92], [1.0, -1.0], 0.0)
        worse = np.select([drawn < 0.09, drawn > 0.96], [-1.0, 1.0], 0.0)
        differs.append(sign_flip_p(equal, clusters) <= 0.05)
        passes.append(lowest_difference(worse, clusters)[0] > -0.02)
        found = share(drawn < 0.9, None, clusters)
        is_held.append(found["low"] <= 0.9 <= found["high"])
    assert np.mean(differs) < 0.09 and np.mean(passes) < 0.09 and np.mean(is_held) > 0.9
