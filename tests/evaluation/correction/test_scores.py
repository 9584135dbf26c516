"""Corrected rates, against loops over items, scipy, ppi-python and statsmodels."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from evaluation.correction.label_plan import sampling_probabilities, systematic_sample
from evaluation.correction.scores import Rate, UnknownSampling, corrected_rate
from evaluation.intervals import Floats, Ints, wilson_interval
from judging.errors import CustosError

NAN = float("nan")


def benchmark(
    seed: int = 0, items: int = 300, labels: int = 80, right: float = 0.85, group_size: int = 1
) -> tuple[Floats, Floats, Ints]:
    """Judge, human labels of some items, and groups in no order."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(items) // group_size
    truth = rng.random(items) < rng.beta(1.2, 0.8, items)[groups]
    judge = np.where(rng.random(items) < right, truth, ~truth).astype(float)
    human = np.full(items, NAN)
    chosen = rng.choice(items, labels, replace=False)
    human[chosen] = truth[chosen]
    return judge, human, groups


def of_group(values: Sequence[float], groups: Sequence[int]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for value, group in zip(values, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + value
    return sums


def ppi_by_loops(judge: Floats, human: Floats, groups: Ints) -> tuple[float, float, float, float]:
    """Value, low, high and lambda, item by item from the formulas."""
    items = range(len(judge))
    labelled = [i for i in items if human[i] == human[i]]
    other = [i for i in items if human[i] != human[i]]
    n, m = len(labelled), len(other)
    rate = sum(human[i] for i in labelled) / n
    on_labelled, on_other = sum(judge[labelled]) / n, sum(judge[other]) / m
    a = [(human[i] - rate) / n if i in labelled else 0.0 for i in items]
    b = [
        (judge[i] - on_labelled) / n if i in labelled else -(judge[i] - on_other) / m for i in items
    ]
    a_sums, b_sums = of_group(a, groups.tolist()), of_group(b, groups.tolist())
    human_var = sum(v**2 for v in a_sums.values())
    shared = sum(a_sums[g] * b_sums[g] for g in a_sums)
    gap_var = sum(v**2 for v in b_sums.values())

    clusters = len({int(groups[i]) for i in labelled})
    spread = rate * (1 - rate)
    sizes = of_group([float(i in labelled) for i in items], groups.tolist())
    variance = sum(v**2 / (1 - sizes[g] / n) for g, v in a_sums.items())
    estimated = max(1.0, variance * (n - 1) / spread)
    mean_size = sum(size**2 for size in sizes.values()) / n
    full = min(rate, 1 - rate) * n / mean_size
    drawn = (full * estimated + 1 + 0.2 * (mean_size - 1)) / (full + 1)
    effect = max(estimated, drawn)
    likeness = min(1.0, (effect - 1) / (mean_size - 1)) if mean_size > 1 else 0.0
    weights = [size * (1 + max(size - 1, 0) * likeness) for size in sizes.values()]
    freedom = sum(weights) ** 2 / sum(w**2 for w in weights) - 1
    quantiles = stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, freedom)
    effective = n / effect * quantiles**2
    doubt = spread / (spread + ((1 - rate) ** 2 + rate**2) / effective) * clusters / (clusters + 2)
    left = (1 - doubt * shared**2 / (human_var * gap_var)) * (1 + 2 / clusters)
    power = shared / gap_var * clusters / (clusters + 2) if left < 1 else 0.0
    value = rate - power * (on_labelled - on_other)
    low, high = wilson_interval(value * effective / min(left, 1), effective / min(left, 1))
    return value, low, high, power


@pytest.mark.parametrize("group_size", [1, 6])
@pytest.mark.parametrize("seed", range(4))
def test_ppi_is_what_loops_over_items_give(seed: int, group_size: int) -> None:
    judge, human, groups = benchmark(seed, group_size=group_size)
    found = corrected_rate(judge, human, random_sample=True, groups=groups)
    value, low, high, power = ppi_by_loops(judge, human, groups)
    assert found.corrected == pytest.approx((value, low, high, 80), abs=1e-12)
    assert found.power == pytest.approx(power, abs=1e-12)
    assert power > 0.3


def test_sensitivity_and_specificity_are_those_on_labelled_items() -> None:
    # 10 labelled: sensitivity 4/5, specificity 3/5. 30 others, 18 of them called 1.
    judge = np.array([1.0, 1, 1, 1, 0, 1, 1, 0, 0, 0] + [1] * 18 + [0] * 12)
    human = np.array([1.0] * 5 + [0] * 5 + [NAN] * 30)
    alone = np.arange(40)
    found = corrected_rate(judge, human, groups=alone, random_sample=True)
    assert (found.sensitivity, found.specificity) == pytest.approx((0.8, 0.6))
    assert found.raw.value == pytest.approx(24 / 40)
    assert (found.raw.n, found.corrected.n) == (40, 10)
    chances = np.array([0.5, 1, 1, 1, 0.25] * 2 + [NAN] * 30)
    weighted = corrected_rate(judge, human, groups=alone, probabilities=chances)
    assert (weighted.sensitivity, weighted.specificity) == pytest.approx((5 / 9, 6 / 9))


GOOD = [1.0, 0, 1, 0]


@pytest.mark.parametrize(
    ("judge", "human", "groups", "message"),
    [
        ([1.0, NAN, 1, 0], [1.0, 0, 1, NAN], [0, 1, 2, 3], "item 1: the judge's label is nan"),
        ([1.0, 0, 1.5, 0], [1.0, 0, 1, NAN], [0, 1, 2, 3], "item 2: the judge's label is 1.5"),
        (GOOD, [1.0, 0, NAN, 2], [0, 1, 2, 3], "item 3: people's label is 2.0"),
        (GOOD, [NAN] * 4, [0, 1, 2, 3], "of 0 independent groups"),
        (GOOD, [1.0, 0, 1, NAN], [3, 3, 3, 4], "of 1 independent groups"),
    ],
)
def test_what_cannot_be_corrected_is_refused(
    judge: list[float], human: list[float], groups: list[int], message: str
) -> None:
    with pytest.raises(CustosError, match=message):
        corrected_rate(
            np.array(judge), np.array(human), groups=np.array(groups), random_sample=True
        )


rows = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0, NAN]), st.integers(0, 6)),
    min_size=6,
    max_size=60,
)


def correct(judge: Floats, human: Floats, groups: Ints, method: str) -> Rate | None:
    """The corrected rate by a method; with ``weighted`` of labels that weigh 1 to 3."""
    weights = None if method == "ppi++" else 1 / (1 + np.round(3 * np.cos(groups)) % 3)
    try:
        return corrected_rate(
            judge, human, random_sample=True, probabilities=weights, groups=groups
        ).corrected
    except CustosError:
        return None


def test_chances_of_one_that_leave_items_out_say_nothing() -> None:
    """Whoever drew every item and labelled a part left the rest out by an unknown rule."""
    judge, everybody = (np.arange(40) % 2).astype(np.float64), np.ones(40)
    human = np.where(np.arange(40) < 15, judge, np.nan)
    correct = partial(corrected_rate, judge, groups=np.arange(40))
    with pytest.raises(UnknownSampling, match="25 of 40"):
        correct(human, probabilities=everybody)
    left_by_chance = correct(human, probabilities=everybody, random_sample=True)
    assert left_by_chance == correct(human, random_sample=True)
    assert correct(judge, probabilities=everybody).corrected.n == 40
    assert correct(human, probabilities=everybody / 2) == left_by_chance


METHODS = st.sampled_from(["ppi++", "weighted"])


@given(rows, METHODS)
def test_intervals_hold_their_value_and_do_not_depend_on_the_order(
    drawn: list[tuple[float, float, int]], method: str
) -> None:
    judge, human, groups = (np.array(column) for column in zip(*drawn, strict=True))
    found = correct(judge, human, groups, method)
    assume(found is not None)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high
    order = np.random.default_rng(len(drawn)).permutation(len(drawn))
    again = correct(judge[order], human[order], groups[order], method)
    assert again == pytest.approx(found, abs=1e-9)


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


def test_labels_of_unknown_sampling_are_refused() -> None:
    judge, human, groups = benchmark()
    with pytest.raises(UnknownSampling):
        corrected_rate(judge, human, groups=groups)
    for wrong in (0.0, 1.5, NAN):
        with pytest.raises(CustosError, match="sampling probability"):
            corrected_rate(judge, human, groups=groups, probabilities=np.full(300, wrong))


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
