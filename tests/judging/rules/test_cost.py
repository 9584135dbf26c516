"""Reading takes time that grows with the text: a pattern that backtracks holds all other calls."""

import time
from collections.abc import Callable

import pytest

from judging.reasoning import without_thoughts
from judging.rules.answer_options import extract_confidence, extract_option
from judging.rules.fact_rules import choice_of, number_is_right, ranking_of
from judging.rules.final_answers import final_answers
from judging.rules.quantities import find_quantities, parse_fraction
from judging.rules.whole_words import holds


def options(text: str) -> object:
    return extract_option(text), extract_confidence(text)


def choices(text: str) -> object:
    return choice_of(text, ("A", "B"))


def ranking(text: str) -> object:
    return ranking_of(text, ("A Corp", "Beta", "Gamma Foods"))


def many_options(text: str) -> object:
    listed = [f"option number {number}" for number in range(100)]
    return extract_option(text + " ".join(listed), listed)


def number(text: str) -> object:
    return number_is_right(text, 5.0, "")


def word(text: str) -> object:
    return holds(text, "112")


def half(text: str) -> object:
    """Look for a reference that stands at thousands of places, and is a part of more at each."""
    return holds(text, text[: len(text) // 2])


SPACES = " " * 3_000
ANALYSIS = "<|channel|>analysis<|message|>19 or 20?<|end|>"
TEXTS: dict[Callable[[str], object], list[str]] = {
    options: [
        piece * (100_000 // len(piece))
        for piece in ("(", "(A", "[0.9", r"boxed{\text{", "A ", "<think>", "   ", "A.")
    ],
    many_options: ["word " * 38_000],
    choices: [f"answer{SPACES}é", f"a{SPACES}é", f"({SPACES}é", "A " * 200_000],
    ranking: ["-" * 150_000, "a" + "\n" * 150_000 + "a"],
    find_quantities: [f"1x10{' ' * 150_000}a"],
    parse_fraction: [f"1x10{' ' * 150_000}a", ";" * 1_000_000],
    number: ["1%;" * 30_000],
    word: [
        piece * (80_000 // len(piece))
        for piece in ("1", "1,", "1/", "the ", "a", "三", "-", "²", " ", "minus ")
    ],
    half: ["1" * 50_001, "三" * 60_000, "one million " * 10_000, "ab" * 50_000],
    final_answers: [
        *(r"\boxed{" * 20_000, "Answer: " * 20_000, "final " * 40_000),
        *("* _#" * 50_000, "Thanks. " * 20_000, "谢谢" * 50_000),
    ],
    without_thoughts: [
        *("<think>" * 50_000, "</think>" * 40_000, '\n<think>"</think>"' * 18_000),
        *("\n" * 300_000 + "</think>", ANALYSIS + "<|channel|>final" * 20_000),
        "a" + " " * 150_000 + "<think> " * 20_000 + "</think>",
    ],
}


@pytest.mark.parametrize(
    ("read", "text"),
    [
        pytest.param(read, text, id=f"{read.__name__}-{number}")
        for read, texts in TEXTS.items()
        for number, text in enumerate(texts)
    ],
)
def test_a_long_text_is_read_at_once(read: Callable[[str], object], text: str) -> None:
    started = time.process_time()
    read(text)
    assert time.process_time() - started < 5  # what is quadratic takes minutes
