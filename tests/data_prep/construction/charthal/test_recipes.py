from data_prep.construction.steps.charthal import CELLS, recipe


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
        assert ("purely hypothetical" in text) == (cell == ("open", "inexist"))
        assert ("if the question can be answered" in text) == (cell == ("reason", "contra"))
        assert ("specific and expects" in text) == (cell == ("desc", "irrel"))
