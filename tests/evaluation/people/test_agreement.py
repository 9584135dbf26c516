"""Agreement of any number of people and the alternative annotator test, as published and plain."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp
from sklearn.metrics import accuracy_score, cohen_kappa_score

from evaluation.estimate import loss_within_p, lowest_difference
from evaluation.intervals import Ints
from evaluation.people.agreement import (
    MIN_ROWS,
    PeoplesLabels,
    gather_people,
    krippendorff_alpha,
    label_agreement,
)
from evaluation.people.annotators import alternative_annotator_test, duels
from judging.tasks import get_task
from tests.evaluation.made_up import example
from tests.evaluation.people.made_up import LEVELS, labels_of_people
from tests.judging.tasks.made_up import declare

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


@pytest.mark.parametrize(
    ("task", "has_levels"),
    [
        ("hieval-qs", True),
        ("grounded", True),
        ("truthful-critique-score", True),
        ("politeness", False),
        ("simplevqa", False),
        ("truthful-pair", False),
    ],
)
def test_labels_are_levels_by_their_place(
    task: str, has_levels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another name they agree as much as the labels of HiEval in their places."""
    declare(monkeypatch)
    rubric = "plain/all" if task == "hieval-qs" else get_task(task).variants[0]
    labels = get_task(task).labels(rubric)
    places = np.random.default_rng(1).integers(min(3, len(labels)), size=(40, 2))
    fields = {"responses": ("a", "b")[: get_task(task).num_responses]}

    def alpha(task: str, labels: tuple[str, ...]) -> float | None:
        rows = [
            example(labels[a], second_label=labels[b], task=task, question=f"q{n}", **fields)
            for n, (a, b) in enumerate(places)
        ]
        people = gather_people(rows, labels)
        assert people is not None
        ordinal = krippendorff_alpha(people)["ordinal"]
        return None if ordinal is None else float(ordinal["value"])

    found = alpha(task, labels)
    assert (found is not None) is has_levels
    if has_levels:
        fields = {}
        assert found == pytest.approx(alpha("hieval-qs", LEVELS))


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


def published(people: PeoplesLabels, judge: Ints, epsilon: float) -> tuple[float, float]:
    """Winning rate and advantage as the paper's section 3 has them, row by row in plain Python."""
    p_values, advantages = [], []
    for person in range(len(people.names)):
        wins, losses = [], []
        for row, labels in enumerate(people.given):
            others = [x for other, x in enumerate(labels) if other != person and x != -1]
            if labels[person] == -1 or not others or judge[row] == -1:
                continue
            of_judge = sum(x == judge[row] for x in others) / len(others)
            of_person = sum(x == labels[person] for x in others) / len(others)
            wins.append(float(of_judge >= of_person))
            losses.append(float(of_person >= of_judge))
        if len(wins) >= 30:
            differences = np.array(losses) - np.array(wins)
            p_values.append(ttest_1samp(differences, epsilon, alternative="less").pvalue)
            advantages.append(np.mean(wins))
    ranked = np.sort(p_values)
    number = len(ranked)
    harmonic = sum(1 / rank for rank in range(1, number + 1))
    below = [rank for rank in range(1, number + 1)
             if ranked[rank - 1] <= rank * 0.05 / (number * harmonic)]  # fmt: skip
    return max(below, default=0) / number, float(np.mean(advantages))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_the_published_figures_are_those_of_the_paper(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    people, judge = labels_of_people(rng, questions=30 + 20 * seed, judge=0.15, present=0.6)
    judge[::17] = -1
    found = alternative_annotator_test(duels(people, judge), len(judge), epsilon)
    winning_rate, advantage = published(people, judge, epsilon)
    assert found["winning_rate_by_rows"] == pytest.approx(winning_rate)
    assert found["advantage"]["value"] == pytest.approx(advantage)
    assert found["advantage"]["low"] < advantage < found["advantage"]["high"]


def test_people_with_too_few_rows_are_not_tested() -> None:
    rng = np.random.default_rng(1)
    people, judge = labels_of_people(rng, questions=40, rows=1, present=1.0)
    people.given[MIN_ROWS - 1 :, 0] = -1
    found = alternative_annotator_test(duels(people, judge), len(judge))
    assert found["tested"] == 3
    assert found["people"]["anna"]["n"] == MIN_ROWS - 1
    assert found["people"]["anna"]["p"] is None and found["people"]["anna"]["wins"] is None
    none = alternative_annotator_test(duels(people.take(np.arange(20)), judge[:20]), 20)
    assert none["passes"] is None and none["winning_rate"] is None and none["tested"] == 0


def test_numbers_are_compared_by_their_distance() -> None:
    """The judge is never right, but nearer to the others than the person who is left out."""
    given = np.tile([0, 9, 9], (40, 1))  # labels 10, 1 and 1
    people = PeoplesLabels(("far", "b", "c"), tuple("10 9 8 7 6 5 4 3 2 1".split()), given,
                           np.arange(40))  # fmt: skip
    judge = np.full(40, 8)  # label 2
    by_name = {duel.name: duel for duel in duels(people, judge)}
    assert by_name["far"].judge.all() and not by_name["far"].person.any()
    words = PeoplesLabels(people.names, tuple("abcdefghij"), given, people.clusters)
    as_words = {duel.name: duel for duel in duels(words, judge)}
    assert as_words["far"].judge.all() and as_words["far"].person.all(), "equal names only"


def test_p_is_the_score_test_by_hand() -> None:
    """Nam's test of a loss (1997) where each row is a question, and large samples."""
    rng = np.random.default_rng(0)
    drawn = rng.choice([-1.0, 0.0, 1.0], p=[0.13, 0.8, 0.07], size=5000)
    lost, won = np.mean(drawn < 0), np.mean(drawn > 0)
    # The likeliest chance of a win if the loss is c, by trying.
    c = 0.08
    chances = np.linspace(1e-4, 0.4, 40_000)
    likelihood = (
        won * np.log(chances) + lost * np.log(chances + c)
        + (1 - lost - won) * np.log(1 - 2 * chances - c)
    )  # fmt: skip
    of_win = chances[np.argmax(likelihood)]
    z = (drawn.mean() + c) / np.sqrt((2 * of_win + c - c * c) / 5000)
    assert loss_within_p(drawn, np.arange(5000), c) == pytest.approx(norm.sf(z), rel=0.02)


@pytest.mark.parametrize(("questions", "rows"), [(60, 1), (30, 5)])
def test_p_and_interval_of_a_loss_say_the_same(questions: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    clusters = np.repeat(np.arange(questions), rows)
    for _ in range(20):
        drawn = rng.choice([-1.0, 0.0, 1.0], p=[0.08, 0.85, 0.07], size=len(clusters))
        lowest, _ = lowest_difference(drawn, clusters)
        assert loss_within_p(drawn, clusters, -lowest) == pytest.approx(0.05, abs=1e-4)
    assert loss_within_p(np.zeros(8), np.zeros(8, dtype=np.int64), 0.1) == 1, "one question"


def test_a_worse_judge_never_passes_and_a_better_one_often() -> None:
    """Over whole tests of four people, who guess in a fifth of rows."""
    people = dict.fromkeys("abcd", 0.2)
    passed = {}
    for guesses in (0.1, 0.7):
        rng = np.random.default_rng(3)
        passed[guesses] = 0
        for _ in range(25):
            given, judge = labels_of_people(rng, 60, 3, people, judge=guesses, present=0.8)
            found = alternative_annotator_test(duels(given, judge), len(judge))
            passed[guesses] += bool(found["passes"])
    assert passed[0.7] == 0
    assert passed[0.1] >= 20
