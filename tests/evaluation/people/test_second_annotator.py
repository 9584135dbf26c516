import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from evaluation.outcomes import gather
from evaluation.people.agreement import side_of_judge
from evaluation.people.annotators import second_annotator
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import evaluation, example, scored, unscored

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
def test_figures_are_those_of_scikit_learn(every: int) -> None:
    examples, verdicts = with_second(every)
    measured = second_annotator(examples, gather(examples, verdicts, LABELS))
    assert measured is not None
    rows = [
        (row.label, row.second_label, verdict.label)
        for row, verdict in zip(examples, verdicts, strict=True)
        if row.second_label and verdict.label
    ]
    first, second, judge = (list(column) for column in zip(*rows, strict=True))
    expected = {"people": (first, second), "judge_first": (first, judge)}
    for name, (a, b) in (expected | {"judge_second": (second, judge)}).items():
        assert measured[name]["accuracy"]["value"] == pytest.approx(accuracy_score(a, b))
        assert measured[name]["kappa"]["value"] == pytest.approx(cohen_kappa_score(a, b))
        assert measured[name]["accuracy"]["n"] == len(rows)
    assert measured["n_second"] == sum(row.second_label is not None for row in examples)
    assert measured["people_all"]["accuracy"]["n"] == measured["n_second"] > len(rows)
    difference = measured["second_minus_first"]["kappa"]["value"]
    assert difference == pytest.approx(
        cohen_kappa_score(second, judge) - cohen_kappa_score(first, judge)
    )
    against_person = measured["judge_minus_second"]["accuracy"]["value"]
    assert against_person == pytest.approx(
        accuracy_score(first, judge) - accuracy_score(first, second)
    )
    differ = [(a, b, c) for a, b, c in rows if a != b]
    assert measured["sides_with"] == {
        "first": sum(a == c for a, _, c in differ),
        "second": sum(b == c for _, b, c in differ),
        "neither": 0,
    }


def test_interval_of_a_difference_against_a_plain_paired_bootstrap() -> None:
    examples, verdicts = with_second()
    measured = second_annotator(examples, gather(examples, verdicts, LABELS))
    assert measured is not None
    interval = measured["second_minus_first"]["accuracy"]
    per_question: dict[str, list[int]] = {}
    for row, verdict in zip(examples, verdicts, strict=True):
        if verdict.label:
            gain = (verdict.label == row.second_label) - (verdict.label == row.label)
            per_question.setdefault(row.question, []).append(int(gain))
    groups, rng = list(per_question.values()), np.random.default_rng(3)
    means = []
    for _ in range(2000):
        drawn = [groups[i] for i in rng.integers(len(groups), size=len(groups))]
        means.append(np.mean([gain for group in drawn for gain in group], dtype=np.float64))
    low, high = np.quantile(means, [0.025, 0.975])
    assert (interval["low"], interval["high"]) == pytest.approx((low, high), abs=0.015)
    assert interval["low"] <= interval["value"] <= interval["high"]


def test_none_without_second_labels_or_labels_of_the_judge() -> None:
    examples, verdicts = evaluation()
    assert second_annotator(examples, gather(examples, verdicts, LABELS)) is None
    examples = [example("Correct", second_label="Wrong")]
    assert second_annotator(examples, gather(examples, [unscored()], LABELS)) is None


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
