"""Labels of rows that were drawn with unequal chances: what they say of all rows."""

import numpy as np
import pytest

from evaluation.correction.label_plan import sampling_probabilities, systematic_sample
from evaluation.correction.scores import UnknownSampling, corrected_rate
from evaluation.intervals import Floats, Ints
from experiments.findings.question_coverage import simulate_questions
from judging.errors import CustosError
from tests.evaluation.correction.test_scores import NAN, benchmark, of_group

ROWS = np.arange(2400)
JUDGE = ((ROWS * 7) % 10 < 6).astype(float)
TRUTH = np.where((ROWS * 11) % 13 < 2, 1 - JUDGE, JUDGE)
CHANCES = np.where(ROWS % 3 == 0, 0.9, 0.3)
DRAWN = np.where(ROWS % 3 == 0, (ROWS * 5) % 10 < 9, (ROWS * 7) % 20 < 6)
HUMAN = np.where(DRAWN, TRUTH, NAN)
PPI_PYTHON = (0.74419643, 0.48705357)
"""What ppi-python 0.2.3 gives for lambda 0 and 1: ``ppi_mean_pointestimate(y, f, every_f, lam=lam,
w=1 / chance, w_unlabeled=ones)``. It is a line in lambda, which is ours over the share of rows
without a label."""
STATSMODELS = 0.01229568
"""Standard error of statsmodels 0.15: ``WLS(y, ones, weights=1 / chance).fit(cov_type="cluster")``
with the groups, without correction."""


@pytest.fixture(scope="module")
def promises() -> dict[str, dict[str, float]]:
    rows = simulate_questions(60, 0, ["reviewed"])
    return {f"{row['promise']} {row['setting']}": row for row in rows}


def test_the_labels_of_reviewed_rows_hold_the_truth_if_they_are_weighed(
    promises: dict[str, dict[str, float]],
) -> None:
    """Before, the least sure rows were labelled and taken for a random sample."""
    assert len(promises) == 8
    for row in promises.values():
        assert row["before"] < 0.5
        assert row["now"] >= 0.87  # of 60 draws
    assert 0.93 <= np.mean([row["now"] for row in promises.values()]) <= 0.98
    assert min(row["before"] for row in promises.values()) < 0.1


def test_the_value_is_that_of_ppi_python() -> None:
    found = corrected_rate(JUDGE, HUMAN, probabilities=CHANCES, groups=ROWS // 4)
    at_0, at_1 = PPI_PYTHON
    power = found.power / (1 - DRAWN.mean())
    assert 0.2 < power < 1
    assert found.corrected.value == pytest.approx(at_0 + power * (at_1 - at_0), abs=1e-8)
    assert found.labelled.value == pytest.approx(at_0, abs=1e-8)


def test_without_the_judge_the_interval_is_that_of_a_clustered_weighted_mean() -> None:
    found = corrected_rate(JUDGE, HUMAN, probabilities=CHANCES, groups=ROWS // 4).labelled
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * STATSMODELS, rel=0.01)


def ppi_error(judge: Floats, human: Floats, chances: Floats, groups: Ints, power: float) -> float:
    """Standard error of the corrected rate at a lambda, from influences added up by loops."""
    items = range(len(judge))
    weight = [1 / chances[i] if human[i] == human[i] else 0.0 for i in items]
    total, n = sum(weight), sum(w > 0 for w in weight)
    rate = sum(w * human[i] for i, w in enumerate(weight) if w) / total
    on_drawn = sum(w * judge[i] for i, w in enumerate(weight)) / total
    other = [1 - n * w / total for w in weight]
    on_other = sum(w * judge[i] for i, w in enumerate(other)) / sum(other)
    moved = []
    for i in items:
        human_part = weight[i] * (human[i] - rate) / total if weight[i] else 0.0
        gap = weight[i] * (judge[i] - on_drawn) / total
        gap -= other[i] * (judge[i] - on_other) / sum(other)
        moved.append(human_part - power * gap)
    return float(sum(v**2 for v in of_group(moved, groups.tolist()).values()) ** 0.5)


@pytest.mark.parametrize("group_size", [1, 6])
def test_the_corrected_interval_has_the_width_of_its_influences(group_size: int) -> None:
    judge, truth, groups = benchmark(1, 3000, 3000, 0.85, group_size)
    chances = np.where(judge == 1, 0.25, 0.9)
    human = np.where(np.random.default_rng(1).random(3000) < chances, truth, NAN)
    found = corrected_rate(judge, human, probabilities=chances, groups=groups)
    expected = ppi_error(judge, human, chances, groups, found.power)
    half = (found.corrected.high - found.corrected.low) / 2
    assert half == pytest.approx(1.96 * expected, rel=0.02)
    errors = [ppi_error(judge, human, chances, groups, found.power + d) for d in (-0.2, 0.2)]
    assert expected < min(errors), "lambda is the best one"


def test_equal_chances_are_a_random_sample() -> None:
    judge, human, groups = benchmark(2, group_size=3)
    same = corrected_rate(judge, human, probabilities=np.full(300, 0.3), groups=groups)
    assert same == corrected_rate(judge, human, random_sample=True, groups=groups)


def test_labels_of_unknown_sampling_are_refused() -> None:
    judge, human, _ = benchmark()
    with pytest.raises(UnknownSampling):
        corrected_rate(judge, human)
    for wrong in (0.0, 1.5, NAN):
        with pytest.raises(CustosError, match="sampling probability"):
            corrected_rate(judge, human, probabilities=np.full(300, wrong))


def table(seed: int) -> tuple[Floats, np.ndarray, Ints]:
    rng = np.random.default_rng(seed)
    confidence = rng.beta(8, 1, 900)
    confidence[:9] = NAN
    return confidence, confidence < 0.7, np.repeat([0, 1, 2], [20, 280, 600])


def test_chances_add_up_to_the_rows_and_each_row_has_one() -> None:
    confidence, doubtful, slices = table(0)
    for rows in (1, 60, 200, 899, 900, 2000):
        chances = sampling_probabilities(confidence, doubtful, rows, slices)
        assert chances.sum() == pytest.approx(min(rows, 900))
        assert 0 < chances.min() and chances.max() <= 1
    chances = sampling_probabilities(confidence, doubtful, 200, slices)
    assert [chances[slices == number].sum() for number in range(3)] == pytest.approx([20, 90, 90])
    alone = sampling_probabilities(confidence, doubtful, 100)
    assert alone[doubtful].sum() == pytest.approx(50)
    sure = alone[~doubtful & ~np.isnan(confidence)]
    order = np.argsort(confidence[~doubtful & ~np.isnan(confidence)])
    assert np.all(np.diff(sure[order]) <= 1e-12), "the surer, the rarer"
    assert sure.min() >= 0.5 * 50 / (~doubtful).sum(), "and no rarer than the floor"
    few = sampling_probabilities(confidence, np.arange(900) < 5, 100)
    assert few[:5] == pytest.approx(1), "all of few doubtful rows are drawn"
    assert sampling_probabilities(np.full(10, NAN), np.zeros(10, bool), 5) == pytest.approx(0.5)


def test_rows_are_drawn_with_their_chances_and_evenly_over_the_order() -> None:
    confidence, doubtful, slices = table(1)
    chances = sampling_probabilities(confidence, doubtful, 120, slices)
    order = np.stack([slices, np.nan_to_num(confidence)], axis=1)
    rng, times = np.random.default_rng(0), np.zeros(900)
    for _ in range(2000):
        drawn = systematic_sample(chances, order, rng)
        assert len(drawn) == len(set(drawn)) == 120
        assert 49 <= np.sum(slices[drawn] == 2) <= 51
        times[drawn] += 1
    error = np.sqrt(chances * (1 - chances) / 2000)
    assert np.all(np.abs(times / 2000 - chances) <= 4.5 * error + 1e-9)
    assert not np.array_equal(drawn, np.sort(drawn)), "who stops early has labelled a random part"
