"""Wordings of a split, seeded generators, and numbers in words."""

import hashlib
from random import Random

import pytest

from data_prep.made.elements import chinese, english
from data_prep.made.words.wordings import (
    Wording,
    WordingSplit,
    question_wordings_of,
    seeded_rng,
    wordings_of,
)

WORDINGS = (Wording("a", "{x}"), Wording("b", "{x}!", held_out=True))


@pytest.mark.parametrize(
    ("split", "responses", "questions"),
    [("train", "a", "a"), ("test", "b", "ab"), ("all", "ab", "ab")],
)
def test_wordings_of_a_split(split: WordingSplit, responses: str, questions: str) -> None:
    assert [wording.id for wording in wordings_of(WORDINGS, split)] == list(responses)
    assert [wording.id for wording in question_wordings_of(WORDINGS, split)] == list(questions)


def test_draws_depend_on_the_parts_of_the_key_alone_as_in_data_made_earlier() -> None:
    digest = hashlib.sha256(b"charts\x1f1\x1ftrain\x1funit\x1f0").digest()
    expected = Random(int.from_bytes(digest[:8], "big")).random()
    assert seeded_rng("charts", 1, "train", "unit", 0).random() == expected
    assert seeded_rng("a", "bc").random() != seeded_rng("ab", "c").random()


@pytest.mark.parametrize(
    ("number", "in_english", "in_chinese"),
    [
        (0, "zero", "零"),
        (10, "ten", "十"),
        (15, "fifteen", "十五"),
        (42, "forty-two", "四十二"),
        (105, "one hundred five", "一百零五"),
        (117, "one hundred seventeen", "一百一十七"),
        (930, "nine hundred thirty", "九百三十"),
    ],
)
def test_numbers_are_spelled(number: int, in_english: str, in_chinese: str) -> None:
    assert (english(number), chinese(number)) == (in_english, in_chinese)
    british = in_english.replace("hundred ", "hundred and ")
    assert english(number, " and ") == british
