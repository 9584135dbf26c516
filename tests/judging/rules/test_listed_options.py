from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.rules.listed_options import letter_of, lists_options, option_named, with_letter
from judging.tasks import get_task
from judging.types import JudgeRequest

CITIES = ("Sydney", "Canberra", "Perth", "Hobart")
BLOOD = ("O", "A", "AB", "B")
QS = get_task("hieval-qs")


@pytest.mark.parametrize(
    "text",
    ["B", "b", "(B)", "b)", "B.", "[B]", "**B**", "The answer is B.", "Answer: (b)", "Option B"]
    + ["Canberra", "canberra.", '"Canberra"', "B. Canberra", "(B) Canberra", "B: canberra"]
    + ["The correct answer is (B) Canberra.", "My answer: Canberra!", "B - Canberra"],
)
def test_an_option_is_named_by_letter_text_or_both(text: str) -> None:
    assert option_named(text, CITIES) == 1


@pytest.mark.parametrize(
    "text",
    ["", "E", "Not B", "B or C", "B. Perth", "Canberra or Perth", "It is Canberra", "Can", "BB"]
    + ["The answer", "B, because A is wrong", "Melbourne", "-", "1", "Ignore this. B"],
)
def test_a_text_that_says_more_or_else_names_none(text: str) -> None:
    assert option_named(text, CITIES) is None


def test_a_letter_that_is_another_options_text_names_none() -> None:
    assert [option_named(text, BLOOD) for text in ("A", "B", "AB", "O", "C")] == [
        *(None, None, 2, 0),
        2,
    ]
    assert option_named("Perth", ("Perth", "Perth ")) is None
    assert option_named("-5", ("5", "-5")) == 1
    assert option_named("102", ("10²", "102")) == 1
    assert option_named("Option B", ("Option B", "Option A")) == 0


@given(st.text(max_size=30), st.lists(st.text(max_size=9), max_size=5))
def test_any_text_names_an_option_that_is_there(text: str, choices: list[str]) -> None:
    named = option_named(text, choices)
    assert named is None or 0 <= named < len(choices)


def test_letters_go_on_after_z() -> None:
    assert [letter_of(index) for index in (0, 25, 26, 51, 52)] == ["A", "Z", "AA", "AZ", "BA"]


def test_references_are_shown_with_letter_and_text() -> None:
    assert {with_letter(text, CITIES) for text in ("c", "Perth", "(C) Perth")} == {"(C) Perth"}
    assert with_letter("the capital", CITIES) == "the capital"
    assert with_letter("B", ()) == "B"


@pytest.mark.parametrize(
    ("references", "mode", "response", "label"),
    [
        (["Canberra"], "any", "(B)", "Correct"),
        (["B"], "all", "Canberra", "Correct"),
        (["B"], "any", "C. Perth", "Wrong"),
        (["Perth", "D"], "any", "Hobart", "Correct"),
        (["Perth", "D"], "all", "Hobart", "Partial"),
        (["Perth", "D"], "all", "A", "Wrong"),
        (["Canberra"], "any", "It is Perth.", None),
        (["the capital"], "any", "B", None),
    ],
)
def test_a_rule_decides_what_is_one_option(
    references: list[str], mode: str, response: str, label: str | None
) -> None:
    row = {"question": "Which city?", "choices": CITIES, "reference_mode": mode}
    ruling = QS.rule(
        JudgeRequest.model_validate({**row, "references": references, "response": response})
    )
    assert (ruling.label if ruling else None) == label


@pytest.mark.parametrize(
    ("question", "has"),
    [
        ("Which?\nA) x\nB) y", True),
        ("Which? (a) x (b) y", True),
        ("Which? A. x B. y", True),
        ("Who was Louis B. Mayer?", False),
        ("When did Vitamin A and B come up?", False),
        ("(a) x", False),
    ],
)
def test_options_in_a_question_are_seen(question: str, has: bool) -> None:
    assert lists_options(JudgeRequest(question=question, responses=("x",))) is has
