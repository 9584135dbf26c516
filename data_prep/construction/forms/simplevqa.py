"""SimpleVQA's expert check: is a question suitable, and what do sources say is the answer?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from data_prep.construction.forms.base import (
    NO,
    NOTE,
    YES,
    Entry,
    Filled,
    Form,
    agreed_values,
    form,
)
from data_prep.construction.steps.base import Row
from data_prep.errors import UnusableText

UNSUITABLE, OTHER_ANSWER = "unsuitable", "people's answer differs"
"""Reasons for discarding a row."""

_SUITABLE = (
    "The question asks for one fact about what the picture shows, precisely enough for one "
    "undisputed answer that will not change. The picture is needed, real, and does not spell the "
    "answer out."
)
_Text = partial(Entry, kind="text", asked_if=("suitable", (YES,)))


@form
class SimpleVQACheck(Form):
    """Check of an item by two experts, and by a third where their answers differ (section 2.4)."""

    name = "simplevqa"
    summary = "is a question suitable, and is its answer what two sources say?"
    guide = (
        f"{_SUITABLE} Look the answer up in two independent sources before you give it. Correct "
        "the atomic question's answer if it is wrong."
    )
    entries = (
        Entry("suitable", "Is the question suitable?", options={YES: _SUITABLE, NO: ""}),
        _Text("answer_found", "The answer, by your sources"),
        _Text("source1", "First source (URL)", compared=False),
        _Text("source2", "Second source (URL)", compared=False),
        _Text(
            "atomic_answer",
            "The atomic question's answer, if the one shown is wrong",
            required=False,
        ),
        NOTE,
    )
    needs = ("question", "answer")
    headings = {
        "question": "Question",
        "answer": "Answer",
        "atomic_question": "Atomic question",
        "atomic_fact": "Answer to the atomic question",
    }

    def decides_alone(self, filled: Filled) -> bool:
        """Tell whether a person calls it unsuitable: one is enough to discard it."""
        return filled["suitable"] == NO

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Add the sources to the item, if people's answer is the one that it has."""
        values = agreed_values(fillings)
        if values["suitable"] == NO:
            raise UnusableText(UNSUITABLE, str(values.get("note", "")))
        if self.entries[1].differs(values["answer_found"], str(row["answer"])):
            raise UnusableText(OTHER_ANSWER, f"'{values['answer_found']}', not '{row['answer']}'")
        sources = (
            str(filled[name]) for filled in fillings.values() for name in ("source1", "source2")
        )
        corrected = values.get("atomic_answer")
        return {
            **row,
            **({"atomic_fact": corrected} if corrected else {}),
            "sources": list(dict.fromkeys(sources)),
            "annotators": list(fillings),
        }
