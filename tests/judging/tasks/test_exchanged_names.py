"""The names of a pair's responses, exchanged in critiques."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.tasks.truthful import exchange_names


@pytest.mark.parametrize(
    ("text", "exchanged"),
    [
        (
            "The reference is Rome. Response A says Rome; Response B says Oslo. Response A is "
            "right; Response B is wrong.",
            "The reference is Rome. Response B says Rome; Response A says Oslo. Response B is "
            "right; Response A is wrong.",
        ),
        (
            "Both are right, but Response B adds a guess.",
            "Both are right, but Response A adds a guess.",
        ),
        ("A is right and B is not.", "B is right and A is not."),
        ("A's count is off; B matches.", "B's count is off; A matches."),
        (
            "Responses A and B agree, as answer (A) shows.",
            "Responses B and A agree, as answer (B) shows.",
        ),
        ("**Response A** is better than B.", "**Response B** is better than A."),
        ("A and B both miss it.", "B and A both miss it."),
        ("Both A and Response B are vague.", "Both B and Response A are vague."),
        (
            "The first response is right, the Second response too.",
            "The second response is right, the First response too.",
        ),
        ("better: B", "better: A"),
        ('I prefer "A" because B invents a survey.', 'I prefer "B" because A invents a survey.'),
    ],
)
def test_names_are_exchanged(text: str, exchanged: str) -> None:
    assert exchange_names(text) == exchanged
    assert exchange_names(exchanged) == text


@pytest.mark.parametrize(
    "text",
    [
        "A bar is missing. A red line stands out.",
        "The right option is B.",
        "It lacks vitamin B and vitamin A.",
        "Plan A is cheaper. Option B is not.",
        "Options A and B are both offered.",
        "An A-level student named John B. Smith got an A+.",
        "The first bar is the second largest.",
        "ABBA sang it; BA flies there.",
        "",
    ],
)
def test_what_names_no_response_stays(text: str) -> None:
    assert exchange_names(text) == text


PIECES = [
    *(
        "A",
        "B",
        " ",
        "Response ",
        "responses ",
        "Answer (",
        ") ",
        "The ",
        "the ",
        "is ",
        " is ",
        "and ",
        " and ",
        " or ",
        ", ",
        ". ",
        "; ",
        "'s ",
        "first",
        "second",
        " response",
        "than ",
        "(",
        "*",
        "-",
        "+",
        ":",
        "\n",
        '"',
        "says ",
        " says ",
        "right",
        "option ",
        "é",
        "1",
        "/",
        "both ",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=60))
def test_exchanging_twice_gives_the_text_back(text: str) -> None:
    assert exchange_names(exchange_names(text)) == text
