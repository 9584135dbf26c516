from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.rules.answer_options import letter_of, option_named, options_of, with_letter
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


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        # A label, or the text of another option.
        ("(A)", BLOOD),
        ("B)", BLOOD),
        ("A", ("B. Canberra", "A. Sydney")),
        # A place in the list, or a text.
        ("Option 2", ("2", "1", "3")),
        ("The answer is option 1", ("10", "1")),
        # Words that merely begin like an announcement.
        ("answers", ("s", "t")),
        ("Options", tuple("tuvwxyzabcdefghijklmn")),
        # Capitals and marks that say what is meant.
        ("mW", ("MW", "kW")),
        ("10 mW", ("10 MW", "5 MW")),
        ("8 mb", ("8 Mb", "16 Mb")),
        ("Co", ("CO", "CO2")),
        ("5", ("5!", "24")),
        ("5'", ('5"', "7")),
        # Two options that read alike: either letter means both.
        ("A", ("Perth", "Perth.", "Hobart")),
        ("B. Perth", ("Perth", "Perth", "Hobart")),
        (".", ("", "Perth")),
    ],
)
def test_a_text_that_may_mean_something_else_names_none(
    text: str, choices: tuple[str, ...]
) -> None:
    assert option_named(text, choices) is None


@pytest.mark.parametrize(
    ("text", "choices", "index"),
    [
        ("10 mW", ("10 MW", "10 mW"), 1),
        ("yes", ("No", "Yes"), 1),
        ("PERTH", CITIES, 2),
        ("A VASE", ("a cup", "a vase"), 1),
        ("option 2", ("1", "2"), 1),
        ("5!", ("5", "5!"), 1),
        ("B. Canberra", ("A. Sydney", "B. Canberra"), 1),
        ("B", ("", ""), 1),
    ],
)
def test_an_option_is_told_from_those_like_it(
    text: str, choices: tuple[str, ...], index: int
) -> None:
    assert option_named(text, choices) == index


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
        (["Canberra"], "any", "(b)", "Correct"),
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
    in_question = {
        **row,
        "choices": (),
        "question": "Which? (A) Sydney (B) Canberra (C) Perth (D) Hobart",
    }
    same = QS.rule(
        JudgeRequest.model_validate({**in_question, "references": references, "response": response})
    )
    assert (same.label if same else None) == label


@pytest.mark.parametrize(
    "layout",
    [
        "{q}\nA) {a}\nB) {b}\nC) {c}",
        "{q} (a) {a} (b) {b} (c) {c}",
        "{q} A. {a} B. {b} C. {c}\n\nAnswer with the letter only.",
        "{q}\n[A] {a}\n[B] {b}\n[C] {c}\n",
        "{q} A: {a} | B: {b} | C: {c}",
        "{q} a) {a}, b) {b}, c) {c}",
        "A) {a}\nB) {b}\nC) {c}\n{q}",
        "{q} [A = {a}; B = {b}; C = {c}",
        "{q}\n- A: {a}\n- B: {b}\n- C: {c}",
        "{q}\nOption A: {a}\nOption B: {b}\nOption C: {c}",
    ],
)
def test_lettered_options_are_found_in_a_question(layout: str) -> None:
    options = {"a": "Louis M. Mayer", "b": "St. John's", "c": "U.S. Steel"}
    question = layout.format(q="Who was it in 1990?", **options)
    request = JudgeRequest(question=question, responses=("x",))
    assert options_of(request) == tuple(options.values())


@pytest.mark.parametrize(
    "question",
    [
        "Who was Louis B. Mayer?",
        "When did Vitamin A and B come up?",
        "(a) x",
        "Which? (b) x (c) y",
        "Is it x, y or z?",
        "Which? A. Louis B. Mayer B. Sam Goldwyn",
        "Player A: 5 points, player B: 7 points. Who won?",
        "If A = 3; B = 4; C = 5, what is B?",
        "",
    ],
)
def test_other_questions_list_no_options(question: str) -> None:
    assert options_of(JudgeRequest(question=question, responses=("x",))) == ()


@given(st.text(alphabet="ABab().[]:= \nxy", max_size=80))
def test_any_question_can_be_read(question: str) -> None:
    options = options_of(JudgeRequest(question=question, responses=("x",)))
    assert all(option in question for option in options)
