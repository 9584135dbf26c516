"""Made answers of reasoning models: what their labels, forms and splits promise."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
import sympy

from data_prep.made.mathematics import make_problem
from data_prep.made.objective import KIND_SHARES, generate_objective
from data_prep.made.words.wordings import words_of

TRAIN = list(generate_objective(1200, 3, held_out=False))
TEST = list(generate_objective(1200, 3, held_out=True))


def test_every_kind_and_both_languages_have_both_labels() -> None:
    counts = Counter((row.metadata["kind"], row.label) for row in TRAIN + TEST)
    assert set(counts) == {(kind, label) for kind in KIND_SHARES for label in ("Correct", "Wrong")}
    languages = Counter(row.metadata["language"] for row in TEST)
    assert 0.2 < languages["zh"] / len(TEST) < 0.4


def test_forms_and_layouts_of_test_are_in_no_other_split() -> None:
    for field in ("layout", "form"):
        seen, tested = (
            {(*map(row.metadata.get, ("kind", "language", field)),) for row in rows}
            for rows in (TRAIN, TEST)
        )
        assert {key for key in seen & tested if key[-1] not in ("cut", "@a")} == set()


def test_right_final_answers_are_correct_and_others_wrong() -> None:
    cuts = words_of("objective")["cut"].values()
    ends = tuple(text for by_split in cuts for each in by_split.values() for text in each)
    for row in TRAIN + TEST:
        assert (row.label == "Correct") == (row.metadata["ending"] == "right")
        assert (row.metadata["ending"] == "cut") == row.responses[0].endswith(ends)


def _radical(text: str) -> sympy.Expr:
    return sympy.sympify(re.sub(r"√(\d+)", r"*sqrt(\1)", re.sub("^(-?)√", r"\1 1√", text)))


def _polynomial(text: str) -> sympy.Expr:
    plain = text.replace("²", "^2").replace("^", "**")
    return sympy.expand(sympy.sympify(re.sub(r"(\d)x", r"\1*x", plain)))


_PLAIN: dict[str, Callable[[str], sympy.Expr]] = {
    "number": lambda text: sympy.Rational(text.removesuffix("%")) / (100 if "%" in text else 1),
    "radical": _radical,
    "polynomial": _polynomial,
    "angle": lambda text: sympy.sympify(re.sub(r"(\d)π", r"\1*pi", text).replace("π", "pi")),
}
"""How sympy reads the forms in plain text."""


@pytest.mark.parametrize("kind", list(_PLAIN))
def test_sympy_agrees_on_what_is_equal(kind: str) -> None:
    for seed in range(30):
        problem = make_problem(Random(seed), kind, "en")
        [right], *wrong = (
            {_PLAIN[kind](form.text) for form in forms if not form.is_latex}
            for forms in (problem.right, *problem.wrong)
        )
        assert all(len(values) == 1 and right not in values for values in wrong)
