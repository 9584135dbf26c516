"""Alpha, agreement and kappa of any number of people, against published and plain calculations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from evaluation.people.agreement import (
    PeoplesLabels,
    Sides,
    krippendorff_alpha,
    label_agreement,
)
from tests.evaluation.people.made_up import LEVELS, labels_of_people

PUBLISHED = (
    *("1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3"),
    *(". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."),
)
"""Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), C: four observers, 12 units."""


def people_of(rows: tuple[str, ...], labels: tuple[str, ...]) -> PeoplesLabels:
    places = {label: number for number, label in enumerate(labels)} | {".": -1}
    given = np.array([[places[cell] for cell in row.split()] for row in rows]).T
    names = tuple(f"person {number}" for number in range(len(rows)))
    return PeoplesLabels(names, labels, given, np.arange(len(given)))


def plain_alpha(people: PeoplesLabels, is_ordinal: bool) -> float:
    """From the definition: differences within rows over differences within all labels."""
    rows = [[int(x) for x in row if x != -1] for row in people.given]
    rows = [row for row in rows if len(row) > 1]
    everything = [x for row in rows for x in row]
    uses = np.bincount(everything, minlength=len(people.labels))

    def apart(a: int, b: int) -> float:
        if not is_ordinal:
            return float(a != b)
        low, high = min(a, b), max(a, b)
        return float((uses[low : high + 1].sum() - (uses[a] + uses[b]) / 2) ** 2)

    observed = sum(
        2 * sum(apart(a, b) for a, b in combinations(row, 2)) / (len(row) - 1) for row in rows
    ) / len(everything)
    expected = 2 * sum(apart(a, b) for a, b in combinations(everything, 2))
    return 1 - observed / (expected / (len(everything) * (len(everything) - 1)))


def test_alpha_of_published_examples() -> None:
    measured = krippendorff_alpha(people_of(PUBLISHED, ("1", "2", "3", "4", "5")))
    assert measured["nominal"]["value"] == pytest.approx(0.743, abs=5e-4)
    assert measured["ordinal"]["value"] == pytest.approx(0.815, abs=5e-4)
    assert measured["nominal"]["n"] == 11, "a unit with one label tells nothing"
    # Wikipedia, Krippendorff's alpha: three coders, 15 units.
    example = (
        *(". . . . . 3 4 1 2 1 1 3 3 . 3", "1 . 2 1 3 3 4 3 . . . . . . ."),
        ". . 2 1 3 4 4 . 2 1 1 3 3 . 4",
    )
    alpha = krippendorff_alpha(people_of(example, ("1", "2", "3", "4")))["nominal"]["value"]
    assert alpha == pytest.approx(0.691358, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_alpha_from_its_definition(seed: int) -> None:
    people, _ = labels_of_people(np.random.default_rng(seed), questions=20, present=0.6)
    measured = krippendorff_alpha(people)
    for kind in ("nominal", "ordinal"):
        plain = plain_alpha(people, kind == "ordinal")
        assert measured[kind]["value"] == pytest.approx(plain, abs=1e-12)


def test_kappa_of_two_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(3, size=90)
    second = np.where(rng.random(90) < 0.7, first, rng.integers(3, size=90))
    third = np.where(rng.random(90) < 0.5, first, rng.integers(3, size=90))
    sides = Sides(np.arange(90) // 3)
    eye = np.eye(3)
    sides.add("second", eye[second], eye[first])
    sides.add("third", eye[third], eye[first])
    kappas = [cohen_kappa_score(first, other) for other in (second, third)]
    assert sides.both("second")["kappa"]["value"] == pytest.approx(kappas[0])
    difference = sides.differences("third", "second")
    assert difference["kappa"]["value"] == pytest.approx(kappas[1] - kappas[0])
    assert difference["agreement"]["value"] == pytest.approx(
        np.mean(third == first) - np.mean(second == first)
    )
    assert difference["kappa"]["low"] < difference["kappa"]["value"] < difference["kappa"]["high"]


def two_people(count: int = 150) -> list[tuple[str, str]]:
    rng = np.random.default_rng(7)
    first = rng.choice(LEVELS, count, p=[0.5, 0.1, 0.4])
    second = np.where(rng.random(count) < 0.8, first, rng.choice(LEVELS, count))
    return list(zip(map(str, first), map(str, second), strict=True))


def test_figures_are_those_of_scikit_learn() -> None:
    pairs = two_people()
    first, second = (list(column) for column in zip(*pairs, strict=True))
    measured = label_agreement(pairs, LEVELS)
    assert measured["kappa"]["n"] == len(pairs)
    assert measured["agreement"]["value"] == pytest.approx(accuracy_score(first, second))
    assert measured["kappa"]["value"] == pytest.approx(cohen_kappa_score(first, second))
    kappas = []
    for label in LEVELS:
        one_against_others = [[text == label for text in side] for side in (first, second)]
        kappas.append(cohen_kappa_score(*one_against_others))
        estimate = measured["per_label"][label]
        assert estimate["value"] == pytest.approx(kappas[-1])
        assert estimate["low"] < estimate["value"] < estimate["high"]
    assert measured["mean_per_label"]["value"] == pytest.approx(np.mean(kappas))


def test_full_agreement_and_a_single_label() -> None:
    measured = label_agreement([("Correct", "Correct"), ("Wrong", "Wrong")] * 4, LEVELS)
    assert measured["kappa"]["value"] == 1
    assert measured["per_label"]["Partial"]["value"] is None
    assert label_agreement([("Wrong", "Wrong")] * 3, LEVELS)["kappa"]["value"] is None
