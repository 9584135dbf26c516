"""Spellings of elements."""

import pytest

from data_prep.made.elements import chinese, english


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
