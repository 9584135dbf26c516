"""How often intervals and tests keep their promises, on drawn benchmarks and rows."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evaluation.correction.scores import Rates, ppi_plus_plus
from evaluation.estimate import lowest_difference, share
from evaluation.intervals import sign_flip_p
from tests.evaluation.drawn import Setting, alike, draw, draw_groups


def held(rates: Rates, truth: float) -> float:
    exists = ~np.isnan(rates.value)
    return float(np.mean((rates.low <= truth)[exists] & (truth <= rates.high)[exists]))


def test_corrected_intervals_hold_the_truth_and_are_no_wider_than_the_labels() -> None:
    rng, coverage, wider = np.random.default_rng(11), dict[str, list[float]](), []
    for accuracy, rate, labels in product((0.6, 0.8, 0.95), (0.1, 0.5, 0.9), (50, 200, 500)):
        tuned = ppi_plus_plus(draw(Setting(accuracy, rate, labels), 300, rng))
        for name, rates in (("ppi", tuned.rates), ("labels", tuned.alone)):
            coverage.setdefault(name, []).append(held(rates, rate))
        width, alone = (np.nanmean(r.high - r.low) for r in (tuned.rates, tuned.alone))
        wider.append(width / alone)
    for name, of_settings in coverage.items():
        assert 0.93 <= np.mean(of_settings) <= 0.98, name
    # 300 draws of a coverage of .93 fall below .88 once in a thousand settings.
    assert min(coverage["ppi"]) > 0.88
    assert max(wider) <= 1.02 and min(wider) < 0.6


def test_groups_need_to_be_known() -> None:
    """Whole groups of ten labelled: as independent items they would be far too sure."""
    cells = draw_groups(Setting(0.9, 0.5, 500), 10, 300, np.random.default_rng(1))
    assert held(ppi_plus_plus(cells).rates, 0.5) > 0.91
    assert held(ppi_plus_plus(replace(cells, starts=None)).rates, 0.5) < 0.85


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
