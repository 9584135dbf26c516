from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judging.rules.quantities import final_quantity, find_quantities, parse_fraction


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-4", -4),
        ("\u22124", -4),
        (".5", 0.5),
        ("$1,200.50", 1200.5),
        ("3e5", 3e5),
        ("3 x 10^5", 3e5),
        ("1½", 1.5),
        ("3/4", 0.75),
        ("2 1/2 tons", 2.5),
        ("seventeen", 17),
        ("forty two", 42),
        ("25%", 0.25),
        ("The answer is 7, since 3 + 4 make it.", None),
        ("3 + 4 = 7", 7),
        ("It is \\boxed{9}", 9),
        ("5 or 6", None),
    ],
)
def test_the_number_an_answer_settles_on(text: str, value: float | None) -> None:
    found = final_quantity(text)
    assert (found.value if found else None) == (value if value is None else pytest.approx(value))


def test_digits_within_names_are_no_numbers() -> None:
    assert find_quantities("Q4 of model v2 beats GPT-5b") == []
    assert [q.number for q in find_quantities("G7 has 12")] == [12]


@settings(deadline=None)
@given(st.floats(-1e9, 1e9).map(lambda value: round(value, 6)))
def test_any_plain_number_is_read_back(value: float) -> None:
    found = final_quantity(f"about {value:.6f} units")
    assert found is not None
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "share", "reasons"),
    [
        ("0.35\nThe axis is cut.", 0.35, "The axis is cut."),
        ("0.35. The axis starts at 90.", 0.35, "The axis starts at 90."),
        ("35 % of them, as 2 bars look alike", 0.35, "of them, as 2 bars look alike"),
        ("Prediction: 0.7 (guess)", 0.7, "(guess)"),
        ("3/10 because", 0.3, "because"),
        ("0", 0, ""),
        ("35", None, "35"),
        ("0.2-0.4 roughly", None, "0.2-0.4 roughly"),
        ("between 0.2 and 0.4", None, "between 0.2 and 0.4"),
        ("-0.1", None, "-0.1"),
        ("1. Estimate: 0.3\n2. The axis", None, "1. Estimate: 0.3\n2. The axis"),
        ("0,3 because", None, "0,3 because"),
        ("1. Everybody is fooled", 1, "Everybody is fooled"),
        ("Nobody is fooled", None, "Nobody is fooled"),
        ("Half of them", 0.5, "of them"),
        ("35 % of 20 people", 0.35, "of 20 people"),
        ("1 of tenants and owners alike", 1, "of tenants and owners alike"),
        ("This one is easy to misread: 0.35", 0.35, ""),
        ("One would expect about 0.4", 0.4, ""),
        ("Zero-based axis is missing, so 0.6", 0.6, ""),
        *(
            (text, None, text)
            for text in (
                *("1 in 5 students", "1 out of 4", "2 of 10", "One in five students"),
                *("One third of them", "one quarter", "one in three: 0.33", "one of 4"),
            )
        ),
        ("", None, ""),
    ],
)
def test_mind_answers(text: str, share: float | None, reasons: str) -> None:
    found, said = parse_fraction(text)
    assert found == (share if share is None else pytest.approx(share))
    assert said == reasons
