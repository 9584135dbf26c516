"""Pairs of responses: labels by construction, held-out forms, splits without shared questions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from data_prep.synthetic.charts.questions import QUESTIONS
from data_prep.synthetic.preference_pairs.generate import CASES, PairRow, generate_pairs
from data_prep.synthetic.preference_pairs.wordings import DESCRIPTIONS, WORDINGS
from judging.tasks import get_task

TIED = ("both right", "both right, both padded", "both wrong")
OTHER = {"A": "B", "B": "A", "None": "None"}


@pytest.fixture(scope="module")
def rows() -> list[PairRow]:
    return list(generate_pairs(3000, 3, "train", pictures=0.0))


def test_same_seed_same_rows() -> None:
    first, again = (list(generate_pairs(30, 8, "test", 0.1)) for _ in range(2))
    assert first == again
    assert first != list(generate_pairs(30, 9, "test", 0.1))
    # Row i depends on i, not on how many are drawn.
    assert first[:10] == list(generate_pairs(10, 8, "test", 0.1))


def test_labels_and_cases_come_in_their_shares(rows: list[PairRow]) -> None:
    labels = Counter(row.pair.label for row in rows)
    ties = sum(CASES[case] for case in TIED)
    assert labels["None"] / len(rows) == pytest.approx(ties, abs=0.03)
    assert labels["A"] / len(rows) == pytest.approx((1 - ties) / 2, abs=0.03)
    for row in rows:
        assert (row.pair.label == "None") == (row.pair.metadata["case"] in TIED)
    assert len({tag for row in rows for tag in row.pair.tags}) == 5


def test_neither_length_nor_place_gives_the_label_away(rows: list[PairRow]) -> None:
    decided = [row.pair for row in rows if row.pair.label != "None"]
    longer_wins = sum(
        (len(pair.responses[0]) > len(pair.responses[1])) == (pair.label == "A") for pair in decided
    )
    assert 0.3 < longer_wins / len(decided) < 0.6


def test_wording_does_not_give_the_label_away(rows: list[PairRow]) -> None:
    """Between a right response and one misread or misreasoned, the form is no sign."""
    forms: dict[str, Counter[bool]] = {}
    for row in rows:
        pair = row.pair
        if pair.metadata["case"] != "one right" or not all(
            len(own) == 2 for own in pair.metadata["forms"]
        ):
            continue  # made up or beside the point: that shows, and is the fault
        for name, (form, _) in zip("AB", pair.metadata["forms"], strict=True):
            forms.setdefault(form.partition(".")[0], Counter())[name == pair.label] += 1
    assert {"bare", "label", "inline", "selected"} == set(forms)
    for family, counts in forms.items():
        n = counts.total()
        assert n > 150
        assert abs(counts[True] / n - 0.5) < 3.3 * 0.5 / n**0.5, (family, counts)


def test_a_blind_reader_learns_little() -> None:
    """Who sees neither question nor reference may find faulty logic in the text, and no more."""
    drawn = [row.pair for row in generate_pairs(6000, 77, "train", pictures=0.0)]
    answered = [
        pair
        for pair in drawn
        if pair.metadata["case"] == "one right"
        and all(len(own) == 2 for own in pair.metadata["forms"])
    ]
    reader = HashingVectorizer(
        ngram_range=(1, 3),
        token_pattern=r"\w+|[^\w\s]",
        n_features=2**16,
        alternate_sign=False,
        binary=True,
    )
    first, second = (reader.transform([p.responses[side] for p in answered]) for side in (0, 1))
    won = np.array([pair.label == "A" for pair in answered])
    model = LogisticRegression(C=0.3, max_iter=500)
    rate = cross_val_score(model, first - second, won, cv=5).mean()
    assert len(answered) > 1500
    assert rate == pytest.approx(0.586, abs=0.03)  # .67 when only right answers came without steps


def test_rows_fit_their_tasks(rows: list[PairRow]) -> None:
    for row in rows[:300]:
        for example in (row.pair, row.swapped, *row.singles):
            task = get_task(example.task)
            task.check(example)
            assert task.target(example) == example.label
            assert task.rule(example) is None
            assert example.critique
        assert row.pair.confidence is not None
        assert 0 < row.pair.confidence < 1


def test_swapping_turns_everything_round(rows: list[PairRow]) -> None:
    for row in rows[:500]:
        pair, other = row.pair, row.swapped
        assert other.responses == pair.responses[::-1]
        assert other.label == OTHER[pair.label]
        assert other.critique and pair.critique
        # Told in the order shown, whoever wins.
        assert other.critique.index("Response A") < other.critique.index("Response B")
        assert Counter(other.critique.replace("A", "B")) == Counter(pair.critique.replace("A", "B"))
        assert (other.group, other.tags and set(other.tags)) == (
            pair.group,
            pair.tags and set(pair.tags),
        )


def test_scores_order_pairs_as_their_labels_do(rows: list[PairRow]) -> None:
    for row in rows:
        first, second = (int(single.label) for single in row.singles)
        ordered = "A" if first > second else "B" if second > first else "None"
        assert ordered == row.pair.label


def test_held_out_forms_are_for_the_test_alone(rows: list[PairRow]) -> None:
    test = list(generate_pairs(2000, 3, "test", pictures=0.0))
    ours = {form.id: form.held_out for form in WORDINGS}
    asked = {form.id: form.held_out for form in QUESTIONS}
    for split, held_out in ((rows, False), (test, True)):
        used = {f for row in split for own in row.pair.metadata["forms"] for f in own}
        assert {f for f in used if f in ours} == {f for f, kept in ours.items() if kept == held_out}
        questions = {row.pair.metadata["question_form"] for row in split}
        assert all(asked[form] == held_out for form in questions)
    told = [form.template.partition("{")[0] for form in DESCRIPTIONS if not form.held_out]
    assert not any(row.pair.question.startswith(tuple(told)) for row in test)
    train_questions = {row.pair.metadata["asked"] for row in rows}
    assert not train_questions & {row.pair.metadata["asked"] for row in test}


def test_what_decides_a_pair_is_told(rows: list[PairRow]) -> None:
    drawn = list(generate_pairs(60, 4, "train", pictures=0.5))
    for row in (*rows, *drawn):
        evidence = row.pair.metadata["evidence"]
        assert row.pair.metadata["needs_picture"] == (evidence == "picture")
        assert bool(row.pair.references) == (evidence == "reference")
        assert bool(row.pair.images) == (row.png is not None)
        assert evidence != "picture" or row.png
    kinds = Counter(row.pair.metadata["evidence"] for row in drawn if row.png)
    assert 18 < sum(kinds.values()) < 42
    assert min(kinds["picture"], kinds["reference"]) > 5
    assert Counter(row.pair.metadata["evidence"] for row in rows)["description"] > 200
