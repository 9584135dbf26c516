import pytest

from data_prep.construction.charthal.recipes import CELLS, parse_question, recipe
from data_prep.errors import UnusableText


def test_recipes_hold_every_criterion_of_their_cell() -> None:
    assert len(CELLS) == len({recipe(cell) for cell in CELLS}) == 12
    needed = {
        "desc": ["facts", "concrete answer"],
        "reason": ["difference", "comparison", "trend", "concrete answer"],
        "open": ["explanation", "cause", "interpretation", "prediction", "no particular fact"],
        "irrel": ["topic that does not occur in the chart at all", "cannot be answered"],
        "inexist": ["year", "category", "label", "variable", "missing", "cannot be answered"],
        "contra": ["false", "never in the question", "what the chart shows instead"],
        "normal": ["only of what the chart really shows", "consistent"],
    }
    for cell in CELLS:
        text = recipe(cell)
        assert all(word in text for word in needed[cell.q_type] + needed[cell.q_relation]), cell
        assert ("leaving the statement aside" in " ".join(text.split())) == (
            cell.q_relation == "contra" and cell.q_type != "open"
        )
        assert ("tentative" in text) == (cell == ("open", "normal"))


@pytest.mark.parametrize(
    "text",
    [
        "Question: Why?\nAnswer: Because.",
        "**Question:** Why?\n\n**Answer:** Because.",
        "\n### Question: Why?\n### Answer: Because.\n",
    ],
)
def test_replies_are_read(text: str) -> None:
    assert parse_question(text) == ("Why?", "Because.")


@pytest.mark.parametrize("text", ["", "Why?", "Answer: a\nQuestion: b", "Question: Why? Answer: x"])
def test_other_replies_are_not(text: str) -> None:
    with pytest.raises(UnusableText, match="expected 'Question:'"):
        parse_question(text)
