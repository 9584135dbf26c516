"""The alternative annotator test, against its published procedure and known truths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp

from evaluation.intervals import Ints
from evaluation.paired import loss_within_p, lowest_difference
from evaluation.people.agreement import MIN_ROWS, PeoplesLabels
from evaluation.people.alternative import alternative_annotator_test, duels
from tests.evaluation.people.made_up import labels_of_people


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
