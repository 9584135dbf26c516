"""Numbers and listed options of hard responses."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.made.hard_answers import OTHER_UNITS, quantity_slots, read_quantity
from data_prep.made.hard_options import generate_options
from judging.tasks import get_task
from judging.types import LabelledExample

UNITS = sorted(OTHER_UNITS)


def value_of(text: str) -> float:
    [number] = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    return float(number.replace(",", ""))


@given(
    st.integers(1, 10**7),
    st.integers(0, 3),
    st.sampled_from(["", *UNITS, "members"]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_a_number_earns_its_label(
    digits: int, decimals: int, unit: str, tolerance: bool, seed: int
) -> None:
    gap = "" if unit == "%" else " "
    reference = f"{digits / 10**decimals:.{decimals}f}{gap}{unit}".strip()
    quantity = read_quantity((reference,))
    if quantity is None:
        return
    for label in ("Correct", "Wrong"):
        slots = quantity_slots(Random(seed), quantity, label, tolerance=tolerance)
        off = abs(value_of(slots["yes"]) - quantity.value) / quantity.value
        ending = f"{gap}{unit}".replace("percent", "%") if unit else ""
        same_unit = slots["yes"].replace("percent", "%").endswith(ending)
        allowed = 0.0501 if tolerance else 1e-9
        if label == "Correct":
            assert same_unit
            assert off < allowed
        elif same_unit:
            assert off > allowed or not tolerance
            assert off > 0
        assert value_of(slots["low"]) < quantity.value < value_of(slots["high"])


@pytest.mark.parametrize(
    ("references", "value"),
    [
        (("1,234 km",), 1234),
        (("$84.3 million",), 84.3),
        (("100", "100 members"), 100),
        (("12.5 %",), 12.5),
        (("about 300 miles",), 300),
        (("24 hours a day",), 24),
    ],
)
def test_a_quantity_is_read(references: tuple[str, ...], value: float) -> None:
    quantity = read_quantity(references)
    assert quantity is not None
    assert quantity.value == value


@pytest.mark.parametrize(
    "references",
    [
        ("1998",),
        ("3",),
        ("12 Monkeys",),
        ("May 2018",),
        ("100", "200"),
        ("47th",),
        ("1988年",),
        ("7-9",),
        ("x",),
    ],
)
def test_years_names_and_small_counts_are_no_quantities(references: tuple[str, ...]) -> None:
    assert read_quantity(references) is None


FIRST = ("Paris", "Anna", "Louis", "Marta", "Jan", "Eva")
LAST = ("Dupont", "Berg", "Klein", "Silva", "Novak", "Lind", "Rossi", "Weber", "Costa", "Haas")
NAMES = [f"{first} {last}" for last in LAST for first in FIRST]


def rows(mode: str = "any", size: int = 1) -> list[LabelledExample]:
    return [
        LabelledExample(
            id=f"q{number}",
            question=f"Who won the race in {1950 + number}?",
            references=tuple(NAMES[(number + 7 * k) % 60] for k in range(size)),
            reference_mode=mode,
            responses=("someone",),
            label="Wrong",
        )
        for number in range(60)
    ]


@pytest.fixture(scope="module")
def made() -> list[LabelledExample]:
    return list(generate_options(rows(), 4, seed=1))


def test_labels_follow_from_the_option_that_is_claimed(made: list[LabelledExample]) -> None:
    """Bare answers are read here anew: by letter or by text, against the option of the source."""
    right_of = {row.question: row.references[0] for row in rows()}
    checked = Counter[str]()
    for row in (*made, *generate_options(rows(), 12, seed=3)):
        if row.choices and re.fullmatch(
            r"It is .*\.|I'd say .*\.|The answer is .{3,}\.", row.response
        ):
            claim = re.sub(r"^(It is|I'd say|The answer is) |\.$", "", row.response)
            assert (row.label == "Correct") == (claim == right_of[row.question])
            checked[row.label] += 1
    assert min(checked["Correct"], checked["Wrong"]) >= 3


def test_the_right_option_is_listed_once_and_every_row_can_be_judged(
    made: list[LabelledExample],
) -> None:
    right_of = {row.question: row.references[0] for row in rows()}
    for row in made:
        get_task(row.task).check(row)
        source = next(question for question in right_of if question in row.question)
        right = right_of[source]
        listed_once = row.choices.count(right) if row.choices else row.question.count(right)
        assert listed_once == 1
        assert "{" not in row.question + row.response
        assert not row.choices or get_task(row.task).rule(row) is None
    assert {bool(row.choices) for row in made} == {True, False}
    assert len({row.id for row in made}) == len(made)


def test_wordings_of_training_and_of_other_splits_are_apart() -> None:
    def wordings(split: str) -> set[str]:
        texts = (row.response for row in generate_options(rows(), 8, 2, split))  # type: ignore[arg-type]
        return {re.sub("|".join(NAMES) + r"|\b[A-Fa-f]\b", "_", text) for text in texts}

    assert not {text for text in wordings("train") & wordings("test") if len(text) > 8}
