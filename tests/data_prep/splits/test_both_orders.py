from __future__ import annotations

from data_prep.construction.critiques import critique_item
from data_prep.construction.forms.base import Value
from data_prep.construction.forms.truthful import TruthfulPair
from data_prep.splits.balance import in_both_orders
from judging.types import LabelledExample


def test_what_people_said_of_a_response_follows_it() -> None:
    row = {
        "id": "p",
        "question": "Which river?",
        "responses": ["green", "brown"],
        "metadata": {"answerers": ["m1", "m2"], "item": "7"},
    }
    said: dict[str, Value] = {
        "faults_b": ("speculative or fictional",),
        "score_a": "9",
        "score_b": "2",
        "better": "A",
        "rationale": "Response B invents a river, and Response A does not.",
    }
    pair = LabelledExample.model_validate(TruthfulPair().settled(row, {"ann": said}))
    given, swapped = in_both_orders([pair])
    assert given == pair
    assert (swapped.label, swapped.responses) == ("B", ("brown", "green"))
    assert swapped.tags == ("A: speculative or fictional",)
    assert swapped.metadata == {
        "answerers": ["m2", "m1"],
        "item": "7",
        "rationale": "Response A invents a river, and Response B does not.",
        "faults": {"A": ["speculative or fictional"], "B": []},
        "scores": {"A": 2, "B": 9},
        "quality": {"A": "exclude", "B": "keep"},
    }
    told = critique_item(swapped, show_reasons=True).messages[1].text
    assert "Faults people marked in response A: speculative or fictional" in told
    assert "Score people gave response A: 2 of 10" in told
    back = in_both_orders([swapped])[1]
    assert (back.tags, back.metadata) == (pair.tags, pair.metadata)


def test_tags_that_name_no_response_stay() -> None:
    pair = LabelledExample(
        id="p",
        task="truthful-pure-label",
        question="Which river?",
        responses=("green", "brown"),
        label="None",
        tags=("source: quiz", "vague"),
        metadata={"counts": {"A": 1, "C": 2}},
    )
    swapped = in_both_orders([pair])[1]
    assert (swapped.tags, swapped.metadata) == (pair.tags, pair.metadata)
