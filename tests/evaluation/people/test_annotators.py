"""A judge among several people: every figure against a plain calculation over single rows."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from evaluation.outcomes import gather
from evaluation.people.agreement import gather_people, labels_by_person, side_of_judge
from evaluation.people.annotators import measure_people, second_annotator
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import evaluation, example, scored, unscored
from tests.evaluation.people.made_up import LEVELS, several

Rows = list[tuple[dict[str, str], str, dict[str, float]]]


def rows_of(examples: list[LabelledExample], verdicts: list[Verdict]) -> Rows:
    """Rows of two people or more with a label of the judge: people, judge, probabilities."""
    return [
        (row.annotator_labels, verdict.label, dict(verdict.probabilities))
        for row, verdict in zip(examples, verdicts, strict=True)
        if len(row.annotator_labels) > 1 and verdict.label
    ]


def measured_of(examples: list[LabelledExample], verdicts: list[Verdict]) -> dict[str, Any]:
    found = measure_people(examples, gather(examples, verdicts, LEVELS))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def made() -> tuple[list[LabelledExample], list[Verdict]]:
    examples, verdicts = several()
    verdicts[5:60:11] = [unscored(verdict.id) for verdict in verdicts[5:60:11]]
    return examples, verdicts


def test_agreement_of_people_and_judge(made: tuple[Any, Any]) -> None:
    found, rows = measured_of(*made), rows_of(*made)
    pairs = [np.mean([a == b for a, b in permutations(people.values(), 2)]) for people, *_ in rows]
    with_judge = [np.mean([each == judge for each in people.values()]) for people, judge, _ in rows]
    best = [
        max(list(people.values()).count(label) for label in LEVELS) / len(people)
        for people, *_ in rows
    ]
    assert found["n_common"] == len(rows) < found["n"]
    assert found["people"]["agreement"]["value"] == pytest.approx(np.mean(pairs))
    assert found["judge"]["agreement"]["value"] == pytest.approx(np.mean(with_judge))
    assert found["best"]["agreement"]["value"] == pytest.approx(np.mean(best))
    difference = found["judge_minus_people"]["agreement"]
    assert difference["value"] == pytest.approx(np.mean(with_judge) - np.mean(pairs))
    assert found["best"]["agreement"]["value"] >= found["judge"]["agreement"]["value"]
    ties = [
        sorted(list(row.annotator_labels.values()).count(label) for label in LEVELS)
        for row in made[0]
        if len(row.annotator_labels) > 1
    ]
    assert found["ties"] == sum(counts[-1] == counts[-2] for counts in ties)


def test_each_person_beside_the_judge_on_the_same_rows(made: tuple[Any, Any]) -> None:
    found, rows = measured_of(*made), rows_of(*made)
    for name, measured in found["each"].items():
        own = [row for row in rows if name in row[0]]
        person, judge = [], []
        for people, label, _ in own:
            others = [each for other, each in people.items() if other != name]
            person.append(np.mean([each == people[name] for each in others]))
            judge.append(np.mean([each == label for each in others]))
        assert measured["n"] == len(own)
        assert measured["person"]["agreement"]["value"] == pytest.approx(np.mean(person))
        assert measured["judge"]["agreement"]["value"] == pytest.approx(np.mean(judge))
        advantage = np.mean([a >= b - 1e-9 for a, b in zip(judge, person, strict=True)])
        assert measured["advantage"]["value"] == pytest.approx(advantage)


def test_soft_labels(made: tuple[Any, Any]) -> None:
    soft, rows = measured_of(*made)["soft"], rows_of(*made)
    entropies, own, squares, unanimous = [], [], [], []
    for people, judge, chances in rows:
        shares = {label: list(people.values()).count(label) / len(people) for label in LEVELS}
        used = {label: share for label, share in shares.items() if share}
        smallest = np.finfo(float).eps
        entropies.append(
            -sum(s * np.log(max(chances.get(label, 0), smallest)) for label, s in used.items())
        )
        own.append(-sum(share * np.log(share) for share in used.values()))
        squares.append(sum((chances.get(label, 0) - shares[label]) ** 2 for label in LEVELS))
        if len(used) == 1:
            unanimous.append(judge in used)
    assert soft["n"] == len(rows)
    assert soft["cross_entropy"]["value"] == pytest.approx(np.mean(entropies))
    assert soft["entropy"]["value"] == pytest.approx(np.mean(own))
    assert soft["brier"]["value"] == pytest.approx(np.mean(squares))
    assert soft["unanimous"]["agreement"]["n"] == len(unanimous)
    assert soft["unanimous"]["agreement"]["value"] == pytest.approx(np.mean(unanimous))
    assert soft["split"]["agreement"]["n"] == len(rows) - len(unanimous)
    judged = [-sum(chance * np.log(chance) for chance in row[2].values() if chance) for row in rows]
    assert soft["entropy_correlation"]["value"] == pytest.approx(np.corrcoef(own, judged)[0, 1])


def test_rivals_are_measured_on_the_rows_that_they_label(made: tuple[Any, Any]) -> None:
    examples, verdicts = made
    nothing = [unscored(verdict.id) for verdict in verdicts]
    found = measure_people(
        examples, gather(examples, verdicts, LEVELS), {"same": verdicts, "nothing": nothing}
    )
    assert found is not None
    assert found["others"]["same"]["agreement"] == found["judge"]["agreement"]
    assert found["others"]["same"]["advantage"] == found["alternative"]["advantage"]
    assert set(found["others"]["nothing"].values()) == {None}


def test_an_advantage_on_every_row_is_known_as_well_as_a_rate() -> None:
    """40 rows on 40 questions without a loss are not the same as no rows at all."""
    people = dict.fromkeys(("anna", "ben", "carla"), "Correct")
    examples = [
        example(id=str(n), question=f"What is {n}?", annotator_labels=people) for n in range(40)
    ]
    verdicts = [scored("Correct", 0.9, id=str(n)) for n in range(40)]
    found = measure_people(examples, gather(examples, verdicts, ["Correct", "Wrong"]))
    assert found is not None
    advantage = found["alternative"]["advantage"]
    assert advantage["value"] == 1 == advantage["high"]
    assert advantage["low"] == pytest.approx(found["each"]["anna"]["advantage"]["low"])
    assert advantage["low"] > 0.9


def test_a_difference_of_agreements_is_1_at_most() -> None:
    """Three rows leave the difference open, and it went from -2 to 2."""
    sides = [("Correct", "Wrong", "Wrong"), ("Correct", "Correct", "Wrong"), ("Wrong",) * 3]
    examples = [
        example(id=str(n), question=f"{n}?", annotator_labels={"anna": one, "ben": two})
        for n, (one, two, _) in enumerate(sides)
    ]
    verdicts = [scored(said, id=str(n)) for n, (*_, said) in enumerate(sides)]
    found = measured_of(examples, verdicts)
    for each in (found["judge_minus_people"], found["each"]["anna"]["judge_minus_person"]):
        assert -1 <= each["agreement"]["low"] < each["agreement"]["high"] <= 1


def test_people_by_name_win_over_first_and_second() -> None:
    assert labels_by_person(example("Correct")) == {}
    two = example("Correct", second_label="Wrong")
    assert labels_by_person(two) == {"first person": "Correct", "second person": "Wrong"}
    named = example("Correct", annotator_labels={"anna": "Wrong"}, second_label="Partial")
    assert labels_by_person(named) == {"anna": "Wrong", "second person": "Partial"}
    people = gather_people([named, example("Correct")], LEVELS)
    assert people is not None and people.given.tolist() == [[2, 1], [-1, -1]]


@pytest.mark.parametrize(
    ("judge", "side"), [("Correct", "anna, carla"), ("Wrong", "ben"), ("Partial", "neither")]
)
def test_sides_of_more_than_two(judge: str, side: str) -> None:
    given = {"anna": "Correct", "ben": "Wrong", "carla": "Correct"}
    row = example("Correct", annotator_labels=given)
    assert side_of_judge(row, scored(judge)) == side
    same = example("Correct", annotator_labels=dict.fromkeys(given, "Correct"))
    assert side_of_judge(same, scored("Correct")) == "all"


LABELS = ("Correct", "Wrong")


def with_second(
    every: int = 1, agreement: float = 0.85
) -> tuple[list[LabelledExample], list[Verdict]]:
    """Rows of which each ``every``-th has a second person's label."""
    examples, verdicts = evaluation(questions=80, unscored_every=13)
    rng = np.random.default_rng(5)
    second = []
    for row, given in enumerate(examples):
        other = "Wrong" if given.label == "Correct" else "Correct"
        label = given.label if rng.random() < agreement else other
        second.append(given.model_copy(update={"second_label": None if row % every else label}))
    return second, verdicts


@pytest.mark.parametrize("every", [1, 2])
def test_two_people_as_scikit_learn_has_them(every: int) -> None:
    examples, verdicts = with_second(every)
    judge = gather(examples, verdicts, LABELS)
    rows = [
        (row.label, row.second_label, verdict.label)
        for row, verdict in zip(examples, verdicts, strict=True)
        if row.second_label and verdict.label
    ]
    first, second, said = (list(column) for column in zip(*rows, strict=True))
    people = measure_people(examples, judge)
    assert people is not None
    for name, own, other in (("first", first, second), ("second", second, first)):
        measured = people["each"][f"{name} person"]
        for side, labels in (("person", own), ("judge", said)):
            agreement, kappa = measured[side]["agreement"], measured[side]["kappa"]
            assert agreement["value"] == pytest.approx(accuracy_score(labels, other))
            assert kappa["value"] == pytest.approx(cohen_kappa_score(labels, other))
    assert second_annotator(examples, judge) == {
        "n_second": sum(row.second_label is not None for row in examples),
        "sides_with": {
            "first": sum(a == c != b for a, b, c in rows),
            "second": sum(b == c != a for a, b, c in rows),
            "neither": 0,
        },
    }


@pytest.mark.parametrize(
    ("second", "judge", "side"),
    [
        ("Wrong", "Correct", "first"),
        ("Wrong", "Wrong", "second"),
        ("Correct", "Correct", "both"),
        ("Correct", "Wrong", "neither"),
        (None, "Wrong", ""),
    ],
)
def test_sides(second: str | None, judge: str, side: str) -> None:
    assert side_of_judge(example("Correct", second_label=second), scored(judge)) == side
    assert side_of_judge(example("Correct", second_label=second), unscored()) == ""
