"""Pairs of responses: labels by construction, and wordings that do not give them away."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from data_prep.made.charts.responses import questions
from data_prep.made.pairs import CASES, PairRow, generate_pairs, wordings
from data_prep.made.words.wordings import Wording, read_wordings
from judging.tasks import get_task
from tests.cli.prep.made_up import SPLITS, read, run

TIED = ("both right", "both right, both padded", "both wrong")
OTHER = {"A": "B", "B": "A", "None": "None"}


@pytest.fixture(scope="module")
def rows() -> list[PairRow]:
    return list(generate_pairs(2000, 3, "train", pictures=0.0))


def test_labels_and_cases_come_in_their_shares(rows: list[PairRow]) -> None:
    labels = Counter(row.pair.label for row in rows)
    ties = sum(CASES[case] for case in TIED)
    assert labels["None"] / len(rows) == pytest.approx(ties, abs=0.03)
    assert labels["A"] / len(rows) == pytest.approx((1 - ties) / 2, abs=0.03)
    for row in rows:
        assert (row.pair.label == "None") == (row.pair.metadata["case"] in TIED)
    assert len({tag for row in rows for tag in row.pair.tags}) == 5


def test_a_blind_reader_learns_little(rows: list[PairRow]) -> None:
    """A reader of responses alone may find faulty logic in the text, and no more."""
    answered = [
        pair
        for pair in (row.pair for row in rows)
        if pair.metadata["case"] == "one right"
        and all(len(ids) == 2 for ids in pair.metadata["forms"])
    ]
    reader = HashingVectorizer(
        ngram_range=(1, 2),
        token_pattern=r"\w+|[^\w\s]",
        n_features=2**14,
        alternate_sign=False,
        binary=True,
    )
    first, second = (reader.transform([p.responses[side] for p in answered]) for side in (0, 1))
    won = np.array([pair.label == "A" for pair in answered])
    model = LogisticRegression(C=0.3, max_iter=500)
    rate = cross_val_score(model, first - second, won, cv=5).mean()
    assert len(answered) > 600
    assert rate < 0.61  # .67 of more pairs, when only right answers came without steps


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
        # Critiques name the responses in order, whoever wins.
        assert other.critique.index("Response A") < other.critique.index("Response B")
        assert Counter(other.critique.replace("A", "B")) == Counter(pair.critique.replace("A", "B"))
        assert (other.group, other.tags and set(other.tags)) == (
            pair.group,
            pair.tags and set(pair.tags),
        )


def test_held_out_wordings_are_for_the_test_alone(rows: list[PairRow]) -> None:
    test = list(generate_pairs(1000, 3, "test", pictures=0.0))
    is_held_out = {wording.id: wording.held_out for wording in (*wordings(), *questions())}
    pair_wordings = {wording.id for wording in wordings()}
    for split, held_out in ((rows, False), (test, True)):
        used = {name for row in split for ids in row.pair.metadata["forms"] for name in ids}
        expected = {name for name in pair_wordings if is_held_out[name] == held_out}
        assert used & pair_wordings == expected
        asked = {row.pair.metadata["question_form"] for row in split}
        assert all(is_held_out[name] == held_out for name in asked)
    described = read_wordings("preference_pairs", "descriptions", Wording)
    starts = [w.template.partition("{")[0] for w in described if not w.held_out]
    assert not any(row.pair.question.startswith(tuple(starts)) for row in test)
    train_questions = {row.pair.metadata["asked"] for row in rows}
    assert not train_questions & {row.pair.metadata["asked"] for row in test}


def test_evidence_is_where_the_metadata_say(rows: list[PairRow]) -> None:
    with_pictures = list(generate_pairs(30, 4, "train", pictures=0.5))
    for row in (*rows, *with_pictures):
        evidence = row.pair.metadata["evidence"]
        assert row.pair.metadata["needs_picture"] == (evidence == "picture")
        assert bool(row.pair.references) == (evidence == "reference")
        assert bool(row.pair.images) == (row.png is not None)
        assert evidence != "picture" or row.png
    kinds = Counter(row.pair.metadata["evidence"] for row in with_pictures if row.png)
    assert 8 < sum(kinds.values()) < 22
    assert min(kinds["picture"], kinds["reference"]) > 2
    assert Counter(row.pair.metadata["evidence"] for row in rows)["description"] > 120


def test_splits_share_no_question_and_pictures_are_found(tmp_path: Path) -> None:
    sizes = ("--val", 10, "--cal", 12, "--test", 30)
    run("pairs", "--rows", 190, "--pictures", 0.04, "--seed", 5, *sizes, "--out", tmp_path)
    asked: list[set[str]] = []
    for split in SPLITS:
        pairs, singles = read(tmp_path, split), read(tmp_path / "scores", split)
        asked.append({pair.metadata["asked"] for pair in pairs})
        assert len(singles) == (1 if split == "train" else 2) * len(pairs)
        for folder, examples in ((tmp_path, pairs), (tmp_path / "scores", singles)):
            for example in examples:
                assert example.split == split
                assert all((folder / name).is_file() for name in example.images)
    assert sum(map(len, asked)) == len(set().union(*asked))
    assert any((tmp_path / "images").iterdir())
