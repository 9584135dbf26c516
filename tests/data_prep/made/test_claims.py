"""Made explanations: what a response gives of its reference, and how it is put."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest

from data_prep.made.claims import LABELS, Facet, generate_claims, topics
from judging.types import LabelledExample

FACETS = [facet for topic in topics() for facet in topic.facets]


@pytest.fixture(scope="module")
def rows() -> list[LabelledExample]:
    return list(generate_claims(2_000, 1, held_out=False))


def values_of(text: str, facet: Facet) -> set[int]:
    """Return which values of a facet a text names."""
    folded = re.sub(r"\s+", " ", text.lower())
    return {
        number
        for number, phrases in enumerate(facet.values)
        if any(phrase.lower() in folded for phrase in phrases)
    }


def test_the_label_follows_from_the_values_that_are_named(rows: list[LabelledExample]) -> None:
    for row in rows:
        reference = " ".join(row.references)
        topic = next(t for t in topics() if t.name.split()[-1] in row.question)
        wanted = {(f.asked, v) for f in topic.facets for v in values_of(reference, f)}
        named = {(f.asked, v) for f in topic.facets for v in values_of(row.response, f)}
        assert len(wanted) == row.metadata["claims"]
        if not named or named - wanted:
            assert row.label == "Wrong"
        else:
            assert row.label == ("Correct" if named == wanted else "Partial")


def test_all_labels_and_kinds_are_drawn_and_no_reference_is_copied(
    rows: list[LabelledExample],
) -> None:
    counts = Counter(row.label for row in rows)
    assert min(counts.values()) > 0.2 * len(rows)
    assert {row.metadata["kind"] for row in rows} == {f"claims_{name}" for name in LABELS}
    copies = [row for row in rows if row.label == "Correct" and row.response in row.references]
    assert len(copies) < 0.05 * len(rows)


def test_test_responses_use_sentences_of_their_own() -> None:
    heads = [
        head
        for facet in FACETS
        for sentence in facet.sentences
        if len(head := sentence.partition("{v}")[0].replace("{s}", "").strip()) > 12
    ]
    for row in generate_claims(400, 1, held_out=True):
        assert not [head for head in heads if head in row.response]


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.asked)
def test_phrases_of_two_values_cannot_be_mistaken(facet: Facet) -> None:
    assert len(facet.sentences) >= 6
    assert len(facet.values) >= 5
    assert all("{v}" in sentence for sentence in (*facet.sentences, *facet.held_out))
    for one, other in combinations(facet.values, 2):
        for a in one:
            assert all(a not in b and b not in a for b in other)
