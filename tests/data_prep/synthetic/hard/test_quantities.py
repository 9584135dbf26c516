"""Numbers of hard responses: right within what the variant allows, wrong beyond it."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.made.hard import generate_hard
from data_prep.made.hard_answers import OTHER_UNITS, quantity_slots, read_quantity
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


def test_both_variants_and_modes_are_made() -> None:
    rows = [
        LabelledExample(
            id=str(number),
            question=f"How long is road {number}?",
            references=(f"{number * 37 + 21} km",),
            reference_mode="any",
            responses=("-",),
            label="Wrong",
        )
        for number in range(40)
    ]
    made = list(generate_hard(rows, 6, 0, ["quantities"]))
    assert {(row.variant, row.reference_mode) for row in made} == {
        (variant, mode) for variant in ("plain", "tolerance") for mode in ("any", "all")
    }
    claiming = [row.label for row in made if row.metadata["claims"]]
    assert claiming.count("Correct") == claiming.count("Wrong")
