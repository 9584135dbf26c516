from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn

from evaluation.pairs.agreement import PAIR_LABELS, measure_pairs, self_consistency
from judging.errors import CustosError
from judging.types import LabelledExample, Verdict
from tests.evaluation.pairs.made_up import OTHER, judged, pair

# People, judge: 9 scored pairs, 7 with a human winner.
LABELS = [
    ("A", "A"), ("A", "A"), ("A", "B"), ("A", "None"), ("B", "B"), ("B", "A"), ("B", "B"),
    ("None", "None"), ("None", "A"),
]  # fmt: skip

some_labels = st.lists(
    st.tuples(st.sampled_from(PAIR_LABELS), st.sampled_from(PAIR_LABELS)), min_size=1, max_size=30
)


def records(
    labels: Sequence[tuple[str, str | None]],
) -> tuple[list[LabelledExample], list[Verdict]]:
    examples = [pair(human, str(i)) for i, (human, _) in enumerate(labels)]
    return examples, [judged(label, str(i)) for i, (_, label) in enumerate(labels)]


def values(labels: Sequence[tuple[str, str | None]]) -> dict[str, float]:
    measured = measure_pairs(*records(labels))
    return {name: row["value"] for name, row in measured.items()}


def test_by_hand() -> None:
    found = measure_pairs(*records(LABELS))
    assert {
        name: (found[name]["value"], found[name]["n"]) for name in found if "ece" not in name
    } == {
        "accuracy_ties_counted": (pytest.approx(5 / 9), 9),
        "accuracy_ties_excluded": (pytest.approx(4 / 7), 7),
        # Five agree, a tie by one side twice is worth one, two reversals nothing.
        "accuracy_ties_half": (pytest.approx(6 / 9), 9),
        # Chance: (4 * 4 + 3 * 3 + 2 * 2) / 81.
        "kappa": (pytest.approx((45 - 29) / (81 - 29)), 9),
        "fpr_ours": (pytest.approx(2 / 7), 7),
        "coverage": (1.0, 9),
    }
    for row in found.values():
        assert np.isnan(row["value"]) or row["low"] <= row["value"] <= row["high"]


@given(some_labels)
def test_kappa_and_accuracy_are_scikit_learns(labels: list[tuple[str, str]]) -> None:
    found, (human, predicted) = values(labels), zip(*labels, strict=True)
    assert found["accuracy_ties_counted"] == pytest.approx(sklearn.accuracy_score(human, predicted))
    if len({*human, *predicted}) > 1:
        assert found["kappa"] == pytest.approx(
            sklearn.cohen_kappa_score(human, predicted), abs=1e-12
        )


@given(some_labels)
def test_turning_every_pair_round_changes_nothing(labels: list[tuple[str, str]]) -> None:
    turned = [(OTHER[human], OTHER[predicted]) for human, predicted in labels]
    assert values(turned) == pytest.approx(values(labels), nan_ok=True)


@given(some_labels)
def test_conventions_differ_by_ties_alone(labels: list[tuple[str, str]]) -> None:
    found, without = values(labels), [pair for pair in labels if "None" not in pair]
    winners = [predicted for human, predicted in labels if human != "None"]
    if winners:
        tied = winners.count("None") / len(winners)
        assert found["accuracy_ties_excluded"] + found["fpr_ours"] + tied == pytest.approx(1)
    if without == labels:
        assert found["accuracy_ties_half"] == found["accuracy_ties_counted"]
        assert found["accuracy_ties_excluded"] == found["accuracy_ties_counted"]
    assert found["accuracy_ties_half"] >= found["accuracy_ties_counted"] - 1e-12


def test_unscored_pairs_count_towards_coverage_only() -> None:
    found = values([*LABELS, ("A", None), ("B", None), ("None", None)])
    assert found.pop("coverage") == pytest.approx(9 / 12)
    expected = values(LABELS)
    del expected["coverage"]
    assert found == pytest.approx(expected, nan_ok=True)


def test_calibration_of_model_and_of_what_it_says() -> None:
    examples = [pair("A", str(i)) for i in range(40)]
    verdicts = [
        judged(
            "A" if i % 2 else "B", str(i), confidence=0.5, stated_confidence=0.9 if i < 30 else None
        )
        for i in range(40)
    ]
    found = measure_pairs(examples, verdicts)
    assert found["ece_model"]["value"] == pytest.approx(0)
    assert found["ece_stated"]["value"] == pytest.approx(0.4)
    assert (found["ece_model"]["n"], found["ece_stated"]["n"]) == (40, 30)


def test_stated_confidence_is_also_binned_as_published() -> None:
    """In a bin of equal width .95 and 1 are one confidence; equal mass parts them."""
    stated = [0.95] * 10 + [1.0] * 10
    verdicts = [
        judged("A" if i < 10 else "B", str(i), stated_confidence=confidence)
        for i, confidence in enumerate(stated)
    ]
    found = measure_pairs([pair("A", str(i)) for i in range(20)], verdicts)
    assert found["ece_stated"]["value"] == pytest.approx((0.05 + 1.0) / 2)
    assert found["ece_stated_equal_width"]["value"] == pytest.approx(0.975 - 0.5)
    assert found["ece_stated_equal_width"]["n"] == 20


def test_labels_of_another_task_are_named() -> None:
    with pytest.raises(CustosError, match="verdict '1': field 'label': 'Wrong' is not one of A, B"):
        measure_pairs([pair("A")], [judged("Wrong")])
    with pytest.raises(CustosError, match="example '1': field 'label': 'Correct' is not"):
        measure_pairs([pair("Correct")], [judged("A")])
    single = LabelledExample(id="1", question="?", responses=("x",), label="A")
    with pytest.raises(CustosError, match="a pair has two"):
        measure_pairs([single], [judged("A")])


def test_questions_are_resampled_whole() -> None:
    alone, grouped = [], []
    for i in range(60):
        alone.append(pair("A", str(i)))
        grouped.append(pair("A", str(i), group=str(i // 6)))
    verdicts = [judged("A" if i // 6 % 2 else "B", str(i)) for i in range(60)]
    narrow, wide = (
        measure_pairs(examples, verdicts, 300)["accuracy_ties_counted"]
        for examples in (alone, grouped)
    )
    assert wide["high"] - wide["low"] > 1.5 * (narrow["high"] - narrow["low"])


def test_self_consistency_by_hand() -> None:
    runs: list[list[str | None]] = [
        ["A"] * 5,
        ["A", "B", "A", "B", "A"],
        ["A", "A", "B", "B", None],
    ]
    found = self_consistency(runs, ["p", "q", "r"])
    entropy = -(0.6 * np.log(0.6) + 0.4 * np.log(0.4))
    assert found["value"] == pytest.approx(entropy / 2)
    assert (found["n"], found["runs"]) == (2, 5)


@given(st.lists(st.lists(st.sampled_from(PAIR_LABELS), min_size=5, max_size=5), min_size=2))
def test_self_consistency_is_scipys_entropy(runs: list[list[str]]) -> None:
    expected = np.mean([stats.entropy([labels.count(x) for x in PAIR_LABELS]) for labels in runs])
    found = self_consistency(runs, range(len(runs)))
    assert found["value"] == pytest.approx(expected, abs=1e-12)
    assert -1e-12 <= found["value"] <= np.log(3) + 1e-12
    turned = [[OTHER[label] for label in reversed(labels)] for labels in runs]
    again = self_consistency(turned, range(len(runs)))
    assert again["value"] == pytest.approx(found["value"], abs=1e-12)


@pytest.mark.parametrize("runs", [[], [["A"]], [["A", "B"], ["A", "B", "A"]]])
def test_runs_must_be_comparable(runs: list[list[str]]) -> None:
    with pytest.raises(CustosError, match="same number, at least two"):
        self_consistency(runs, range(len(runs)))
