import itertools
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.splits.near_duplicates import (
    cluster_examples,
    cluster_together,
    near_duplicate_clusters,
)
from judging.files.questions import normalise_question
from tests.data_prep.examples import example


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
        clusters = near_duplicate_clusters(texts, threshold).tolist()
    assert partition(clusters) == all_pairs_partition(texts, threshold)


def test_clusters_of_many_templates_are_those_of_comparing_every_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("data_prep.splits.near_duplicates.PAIRS_AT_ONCE", 500)
    monkeypatch.setattr("data_prep.splits.near_duplicates.CHECKS_AT_ONCE", 20)
    rng = random.Random(3)
    syllables = ["ka", "mi", "ron", "ble", "sto", "ni", "qu", "vel"]
    names = ["".join(rng.choices(syllables, k=rng.randint(1, 6))) for _ in range(60)]
    templates = ["what is the capital of {}", "who founded the town of {} long ago", "{} or not"]
    texts = sorted({rng.choice(templates).format(rng.choice(names)) for _ in range(150)})
    expected = all_pairs_partition(texts, 0.6)
    assert 10 < len(expected) < len(texts), "the made-up texts should hold both kinds"
    assert partition(near_duplicate_clusters(texts, 0.6).tolist()) == expected


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


def test_cluster_names_depend_on_their_members_alone() -> None:
    gala = "Who sang at the opening gala?"
    questions = [gala, "who sang at the opening gala night", "Why?", "When?"]
    examples = [example(question) for question in questions]
    names = cluster_examples(examples)
    assert cluster_examples(examples[::-1]) == names[::-1]
    assert cluster_examples([*examples[:2], examples[3]]) == [*names[:2], names[3]]
    assert cluster_together(examples[:1], [], examples[1:]) == [names[:1], [], names[1:]]
    assert names[0] == names[1]


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
