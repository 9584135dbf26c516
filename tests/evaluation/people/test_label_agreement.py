"""Agreement of two people by label, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from evaluation.people.agreement import label_agreement

LABELS = ("Correct", "Partial", "Wrong")


def labelled(count: int = 150) -> list[tuple[str, str]]:
    rng = np.random.default_rng(7)
    first = rng.choice(LABELS, count, p=[0.5, 0.1, 0.4])
    second = np.where(rng.random(count) < 0.8, first, rng.choice(LABELS, count))
    return list(zip(map(str, first), map(str, second), strict=True))


def test_figures_are_those_of_scikit_learn() -> None:
    pairs = labelled()
    first, second = (list(column) for column in zip(*pairs, strict=True))
    measured = label_agreement(pairs, LABELS)
    assert measured["kappa"]["n"] == len(pairs)
    assert measured["agreement"]["value"] == pytest.approx(accuracy_score(first, second))
    assert measured["kappa"]["value"] == pytest.approx(cohen_kappa_score(first, second))
    kappas = []
    for label in LABELS:
        one_against_others = [[text == label for text in side] for side in (first, second)]
        kappas.append(cohen_kappa_score(*one_against_others))
        estimate = measured["per_label"][label]
        assert estimate["value"] == pytest.approx(kappas[-1])
        assert estimate["low"] < estimate["value"] < estimate["high"]
    assert measured["mean_per_label"]["value"] == pytest.approx(np.mean(kappas))


def test_full_agreement_and_a_single_label() -> None:
    measured = label_agreement([("Correct", "Correct"), ("Wrong", "Wrong")] * 4, LABELS)
    assert measured["kappa"]["value"] == 1
    assert measured["per_label"]["Partial"]["value"] is None
    assert label_agreement([("Wrong", "Wrong")] * 3, LABELS)["kappa"]["value"] is None


def test_labels_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="not in"):
        label_agreement([("Odd", "Wrong")], LABELS)


def test_intervals_keep_questions_together() -> None:
    """Twelve questions with ten items each; by item .71 to .86 of such intervals held the truth."""
    rng = np.random.default_rng(3)
    held, by_item = 0, 0
    for _ in range(80):
        agreed = rng.random(120) < np.repeat(rng.beta(2.4, 0.6, 12), 10)
        pairs = [("Correct", "Correct" if same else "Wrong") for same in agreed]
        questions = (np.arange(120) // 10).tolist()
        clustered = label_agreement(pairs, ("Correct", "Wrong"), questions)["agreement"]
        single = label_agreement(pairs, ("Correct", "Wrong"))["agreement"]
        held += clustered["low"] <= 0.8 <= clustered["high"]
        by_item += single["low"] <= 0.8 <= single["high"]
    assert held >= 0.9 * 80
    assert by_item < 0.9 * 80
