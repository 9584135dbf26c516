"""Questions that hard responses are made to, from rows that people judged."""

from __future__ import annotations

from data_prep.made.hard import read_items
from judging.types import LabelledExample, ReferenceMode


def row(response: str, label: str, mode: ReferenceMode) -> LabelledExample:
    return LabelledExample(
        question="Who lives there?",
        references=("Anna Qa", "Bert Qb"),
        reference_mode=mode,
        responses=(response,),
        label=label,
    )


def test_labels_of_one_reference_mode_do_not_count_in_the_other() -> None:
    rows = [row("It is Anna Qa.", "Correct", "any"), row("Anna Qa and Bert Qb.", "Correct", "all")]
    judged = {item.example.reference_mode: item.judged["Correct"] for item in read_items(rows)}
    assert judged == {"any": ("It is Anna Qa.",), "all": ("Anna Qa and Bert Qb.",)}
