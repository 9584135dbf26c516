"""TruthfulVQA's checks by people (section 3.2): pictures, then inspection, then acceptance.

Pictures count once five people confirm them, and five inspect every question. Inspection returns
what is wrong to the annotators, and acceptance lets through what meets every standard.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import ClassVar

from data_prep.construction.forms.base import (
    NO,
    NOTE,
    YES,
    Entry,
    Filled,
    Form,
    agreed_values,
    form,
    texts_of,
    yes_or_no,
)
from data_prep.construction.steps.base import Row
from data_prep.construction.steps.truthfulvqa import CATEGORY_OF, LEVELS, TAXONOMY
from data_prep.errors import UnusableText

NOT_CONFIRMED, RETURNED, NOT_ACCEPTED = "picture not confirmed", "returned", "not accepted"
"""Reasons for discarding a row."""


@form
class PictureStage(Form):
    """First stage: does a picture mislead, and how? Five people work alone.

    All must say that it does; more than half of them say how.
    """

    name = "truthfulvqa-picture"
    summary = "does the picture mislead, and in which of 21 ways?"
    guide = (
        "Say whether the picture misleads somebody who looks at it, and in which way. The one "
        "who chose it sees it as shown; disagree where you do."
    )
    entries = (
        yes_or_no("misleads", "Does the picture mislead?", unanimous=True),
        Entry(
            "subcategory",
            "In which way?",
            options={name: TAXONOMY[category][name] for name, category in CATEGORY_OF.items()},
            asked_if=("misleads", (YES,)),
        ),
        NOTE,
    )
    headings = {"what_misleads": "What is said to mislead"}
    needs = ()
    per_row = 5

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Add the category that most people name."""
        values = agreed_values(fillings)
        if values["misleads"] == NO:
            raise UnusableText(NOT_CONFIRMED, str(values.get("note", "")))
        subcategory = values["subcategory"]
        category = CATEGORY_OF[subcategory]
        placed = {"category": category, "subcategory": subcategory}
        return {**row, **placed, "annotators": list(fillings)}


class QuestionStage(Form):
    """A stage at which people look at a question with its answer."""

    needs = ("level", "question", "options", "ground_truth")
    reason: ClassVar[str]
    field: ClassVar[str]

    def shown(self, row: Row) -> Mapping[str, str]:
        """Show the level and what it asks for, the question, its options and its answer."""
        options = "\n".join(
            f"({letter}) {option}"
            for letter, option in zip(ascii_uppercase, row["options"], strict=False)
        )
        return {
            "Level": f"{row['level']}. {LEVELS[row['level']]}",
            **texts_of(row, subcategory="Kind of picture", question="Question"),
            "Options": options,
            "Answer": str(row["ground_truth"]),
        }

    def decides_alone(self, filled: Filled) -> bool:
        """Tell whether a person finds a fault: one is enough."""
        return bool(self._faults(filled))

    def _faults(self, filled: Filled) -> list[str]:
        """Name the points that a person says no to; a note may say no to anything."""
        points = (entry.name for entry in self.entries if entry.kind == "choice")
        return [name for name in points if filled.get(name) == NO]

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Keep the row, or reject it for the faults that people found."""
        faults = {
            name: str(filled.get("note", ""))
            for filled in fillings.values()
            for name in self._faults(filled)
        }
        if faults:
            notes = "; ".join(filter(None, dict.fromkeys(faults.values())))
            raise UnusableText(self.reason, f"{', '.join(faults)}: {notes}")
        return {**row, self.field: list(fillings)}


@form
class InspectionStage(QuestionStage):
    """Second stage: five people inspect every question, and faulty ones go back."""

    name = "truthfulvqa-inspection"
    summary = "is a question of its level, hard enough, with options that exclude each other?"
    guide = "Check each point by the picture. One 'no' returns the question; say why in the note."
    entries = (
        yes_or_no("level_fits", "Is it a question of this level?"),
        yes_or_no("difficulty_fits", "Is it neither trivial nor unfair?"),
        yes_or_no("options_exclusive", "Do the options exclude each other?"),
        yes_or_no("answer_right", "Is the answer right, and no other?"),
        NOTE,
    )
    per_row = 5
    reason, field = RETURNED, "inspected_by"


@form
class AcceptanceStage(QuestionStage):
    """Third stage: what passed inspection is accepted, or not."""

    name = "truthfulvqa-acceptance"
    summary = "does an inspected question meet every standard?"
    guide = "Accept only what meets every standard: picture, level, wording, options, answer."
    entries = (yes_or_no("accepted", "Accept it?"), NOTE)
    per_row = 1
    reason, field = NOT_ACCEPTED, "accepted_by"
