import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.rules.answer_options import (
    extract_confidence,
    extract_option,
    find_option,
    letter_of,
    option_named,
    options_of,
    plain_option,
    published_option,
    with_letter,
    without_confidence,
)
from judging.tasks import get_task
from judging.types import JudgeRequest

CASES: list[tuple[str, str | None]] = [
    # Parentheses.
    ("(A)", "A"),
    ("(A) is wrong, so it is (D)", "D"),
    ("( B )", "B"),
    ("(**C**)", "C"),
    ("(A.)", "A"),
    ("（D）, unlike C", "D"),  # full width
    ("Therefore:\n\n(B) No, its lines do not meet.", "B"),
    ("(B), although (E) is not an option", "B"),
    ("I pick (B) (not option A)", "B"),  # whole parentheses before half ones
    # Half parentheses.
    ("A)", "A"),
    ("A) no. B) no. Answer: D)", "D"),
    ("**B)** two", "B"),
    ("(after DNA) C", "C"),
    # Boxed.
    (r"\boxed{A}", "A"),
    (r"\boxed{\text{C}}", "C"),
    (r"\boxed{\mathrm{B}. 42}", "B"),
    (r"First \boxed{A}, no, \boxed{D}", "D"),
    (r"\boxed{Apple} B", "B"),
    # Bare letters.
    ("B", "B"),
    ("The answer is D", "D"),
    ("The final answer is **B**", "B"),
    ("A is correct", "A"),
    ("<answer>C</answer>", "C"),
    ("答案是B。", "B"),
    ("B.The lines meet", "B"),
    ("B. A cat sits there", "B"),  # an article
    ("B: Because Cats Do", "B"),  # letters inside words
    # Where another letter stands beside it.
    ("C. A pear lies there; option B is a peach.", "C"),
    ("C\n\nExplanation: (A) is green... (D) is round...", "C"),
    ("Answer: C because D is wrong", "C"),
    ("The correct answer is option D, since A and B are wrong", "D"),
    ("I thought the answer is A. Wait, the answer is B.", "B"),
    ("It is not (A). It cannot be B.", None),
    ("A or B", None),
    ("The answer is A or D.", None),
    ("The answer is A, D", None),
    ("B\nC", None),
    ("D, A is wrong", "D"),
    # Denied, or corrected.
    ("I don't think it is A", None),
    ("Do not pick option A", None),
    ("The wrong answer is A", None),
    ("(A) can be ruled out", None),
    ("Anything but A", None),
    ("不选A", None),
    ("Answer: B. Correction: C", "C"),
    ("B. No, A cup would be red", "B"),
    # Lower case, full width, Chinese.
    ("the answer is c", "C"),
    ("the answer is a vase", None),
    ("c) a pear", "C"),
    ("Ｃ", "C"),
    ("答案：Ｄ", "D"),
    ("我选择C，因为A不对", "C"),
    ("答案是A或B", None),
    ("B, like the U.S.A. flag", "B"),
    # Lower case.
    ("b", "B"),
    # After a thought.
    ("<think>(A) or (C)?</think>B", "B"),
    ("◁think▷ maybe (A) ◁/think▷ The answer is D", "D"),
    ("<think>(A)</think>", None),
    ("<think>(A)? (C)? maybe (C)", None),
    ("<think>(A)</think>B <thinking>or (C)", "B"),
    # Nothing to read.
    ("", None),
    ("I cannot tell.", None),
    ("A dog is shown.", None),
    ("(E)", None),
    ("42", None),
]


@pytest.mark.parametrize(("response", "expected"), CASES)
def test_the_option_settled_on_and_its_place(response: str, expected: str | None) -> None:
    assert extract_option(response) == expected
    option = find_option(response)
    if expected is None:
        assert option is None
        return
    assert option is not None
    letter, place = option
    assert letter == expected == unicodedata.normalize("NFKC", response[place]).upper()


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("a pear", "B"),
        ("It is a green pear.", "C"),  # which holds the words of no shorter option
        ("I see a peach", "A"),
        ("Not a peach but a pear", "B"),
        ("a peach or a pear", None),
        ("a pear is not there", None),
        ("It isn't a pear", None),
        ("-5", None),
        ("5 pieces", "D"),
        ("（Ｃ）, not a pear", "C"),
    ],
)
def test_an_option_may_be_named_by_its_text(response: str, expected: str | None) -> None:
    assert extract_option(response, ["a peach", "a pear", "a green pear", "5"]) == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("(B)", "B"),
        ("B, not A", "B"),
        ("Answer: B because A is wrong", "B"),
        ("B. It stands on the table.", "B"),
        ('{"answer": "B"}', "B"),
        (r"\boxed{B}", "B"),
        ("It is a pear", "B"),
        # Someone who reads carefully cannot be sure, or reads another.
        ("B. No, C", None),
        ("The answer is B. Wait, it is C.", None),
        ("B: 40 %, C: 60 %", None),
        ("If it is green, the answer is B", None),
        ("People pick B", None),
        ("Is it B?", None),
        ("B is the least likely", None),
        ("Nobody thinks B is correct", None),
        ("~~B~~", None),
        ("别选B", None),
        ("4-5 pears", None),
        ("Plan B", None),
        ("20 °C", None),
        ("C++", None),
        ("(A) a peach (B) a pear", None),
        ("It looks like a pear but is something else", None),
        ("B" + " and so on" * 40, None),
    ],
)
def test_only_what_leaves_no_doubt_is_plain(response: str, expected: str | None) -> None:
    assert plain_option(response, ["a peach", "a pear", "a green pear", "5"]) == expected
    # No letter after D is read: A would be all that is seen of this.
    assert plain_option("E, as A shows", "vwxyz") is None


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("(A) or (D)", "D"),
        ("The answer is B, not A.", "A"),
        ("(E)", "E"),
        ("Don't know", "D"),
        ("Because I say so", "B"),
        ("<think>(A)</think>", "A"),
        (r"\boxed{c}", "C"),
        ("b", None),
        ("（Ｂ）", None),
    ],
)
def test_the_published_code_reads_letters_anywhere(response: str, expected: str | None) -> None:
    assert published_option(response) == expected


@given(st.text(max_size=60), st.sampled_from("ABCD"))
def test_the_last_parentheses_win(before: str, option: str) -> None:
    # A sentence ends between: "of (A)" may deny the option.
    assert extract_option(f"{before}. ({option})") == option


@given(st.text(max_size=80))
def test_any_text_gives_an_option_or_none(text: str) -> None:
    assert extract_option(text) in (*"ABCD", None)
    confidence = extract_confidence(text)
    assert confidence is None or 0 <= confidence <= 1


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("(A)[0.9]", 0.9),
        ("(A) [.75]", 0.75),
        ("(A)[1]", 1.0),
        ("(A)[ 0.5 ]", 0.5),
        ("(B)[90%]", 0.9),
        ("[0.2] no, rather [0.8]", 0.8),
        ("(A)[0.9], as source [3] says", 0.9),
        ("(A)[Confidence: 0.7]", 0.7),
        ("<think>[0.1]</think>(A)[0.6]", 0.6),
        ("(A) 0.9", None),
        ("(A)[90]", None),
        ("(A)[1.2]", None),
        ("(A)[-0.3]", None),
        ("", None),
    ],
)
def test_the_confidence_stated(response: str, expected: float | None) -> None:
    assert extract_confidence(response) == (expected and pytest.approx(expected))


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("5 [0.85]", "5"),
        ("北京［０.９］", "北京"),
        ("½ full ［90％］ of it", "½ full  of it"),
        ("[0.9]", "[0.9]"),
    ],
)
def test_a_stated_confidence_is_no_part_of_the_answer(response: str, answer: str) -> None:
    assert without_confidence(response) == answer
    if answer != response:
        assert extract_confidence(response) is not None


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
    ("text", "choices", "index"),
    [
        # A label, or the text of another option.
        ("(A)", BLOOD, None),
        ("A", ("B. Canberra", "A. Sydney"), None),
        ("B", ("Team B", "Team A"), None),
        ("C", ("Kelvin (K)", "Celsius (C)", "Fahrenheit (F)"), None),
        ("B", ("A dog", "A cat", "both A and B"), 1),
        ("B", ("Louis B. Mayer", "Ann"), 1),
        # A place in the list, or a text.
        ("Option 2", ("2", "1", "3"), None),
        # Words that merely begin like an announcement.
        ("answers", ("s", "t"), None),
        ("Options", tuple("tuvwxyzabcdefghijklmn"), None),
        # Capitals and marks that say what is meant.
        ("mW", ("MW", "kW"), None),
        ("Co", ("CO", "CO2"), None),
        ("5", ("5!", "24"), None),
        ("5'", ('5"', "7"), None),
        # Two options that read alike: either letter means both.
        ("A", ("Perth", "Perth.", "Hobart"), None),
        ("B. Perth", ("Perth", "Perth", "Hobart"), None),
        (".", ("", "Perth"), None),
        # Told from those like it.
        ("10 mW", ("10 MW", "10 mW"), 1),
        ("yes", ("No", "Yes"), 1),
        ("A VASE", ("a cup", "a vase"), 1),
        ("option 2", ("1", "2"), 1),
        ("B. Canberra", ("A. Sydney", "B. Canberra"), 1),
        ("B", ("", ""), 1),
    ],
)
def test_an_option_is_told_from_those_like_it(
    text: str, choices: tuple[str, ...], index: int | None
) -> None:
    assert option_named(text, choices) == index


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
@pytest.mark.parametrize(
    "asked",
    [
        {"question": "Which city?", "choices": CITIES},
        {"question": "Which? (A) Sydney (B) Canberra (C) Perth (D) Hobart"},
    ],
)
def test_a_rule_decides_what_is_one_option(
    references: list[str], mode: str, response: str, label: str | None, asked: dict[str, Any]
) -> None:
    row = {"references": references, "response": response, "reference_mode": mode}
    ruling = QS.rule(JudgeRequest.model_validate(asked | row))
    assert (ruling.label if ruling else None) == label


@pytest.mark.parametrize(
    "layout",
    [
        "{q}\nA) {a}\nB) {b}\nC) {c}",
        "{q} (a) {a} (b) {b} (c) {c}",
        "{q} A. {a} B. {b} C. {c}\n\nAnswer with the letter only.",
        "{q}\n[A] {a}\n[B] {b}\n[C] {c}\n",
        "{q} A: {a} | B: {b} | C: {c}",
        "A) {a}\nB) {b}\nC) {c}\n{q}",
        "{q} [A = {a}; B = {b}; C = {c}",
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
        "(a) x",
        "Which? (b) x (c) y",
        "Which? A. Louis B. Mayer B. Sam Goldwyn",
        "Player A: 5 points, player B: 7 points. Who won?",
        "If A = 3; B = 4; C = 5, what is B?",
        "",
    ],
)
def test_other_questions_list_no_options(question: str) -> None:
    assert options_of(JudgeRequest(question=question, responses=("x",))) == ()


@given(st.text(max_size=30), st.lists(st.text(max_size=9), max_size=5))
def test_any_text_names_an_option_that_is_there(text: str, choices: list[str]) -> None:
    named = option_named(text, choices)
    assert named is None or 0 <= named < len(choices)


@given(st.text(alphabet="ABab().[]:= \nxy", max_size=80))
def test_any_question_can_be_read(question: str) -> None:
    options = options_of(JudgeRequest(question=question, responses=("x",)))
    assert all(option in question for option in options)
