"""Questions to make hard responses to: their right answers, and what people said of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from data_prep.splits.near_duplicates import question_key
from data_prep.synthetic.hard.answers import asked_word, is_chinese, is_entity, shape_of
from data_prep.synthetic.hard.frames import Frame
from data_prep.synthetic.hard.quantities import Quantity, read_quantity
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG, HiEvalQuickScore
from judging.types import LabelledExample

MAX_WHOLE_CHARS = 600
"""Responses of people's rows that are longer are not put into frames."""


@dataclass(frozen=True)
class Item:
    """One question, its references and the judged responses to it."""

    example: LabelledExample
    """The first row that asks it."""
    judged: dict[str, tuple[str, ...]]
    """Label to the responses that earned it."""

    @property
    def references(self) -> tuple[str, ...]:
        """Return the right answers."""
        return self.example.references

    @property
    def is_set(self) -> bool:
        """Return whether the references are a set, of which a part is Partial."""
        return self.example.reference_mode == "all" and len(self.references) > 1

    @cached_property
    def asked(self) -> str:
        """Return the question word that the question begins with; empty: it begins otherwise."""
        return asked_word(self.example.question)

    @cached_property
    def is_number(self) -> bool:
        """Return whether the right answer is a year, a date or another number."""
        return shape_of(self.references[0]) in ("year", "date", "number")

    @cached_property
    def chinese(self) -> bool:
        """Return whether the question is asked in Chinese."""
        return is_chinese(self.example.question)

    @cached_property
    def quantity(self) -> Quantity | None:
        """Return the number that is the right answer, if it is one that may be a little off."""
        return None if self.is_set else read_quantity(self.references)

    def suits(self, frame: Frame) -> bool:
        """Return whether a frame makes sense for the answers and the language of the question."""
        if frame.language not in ("any", "zh") and self.chinese:
            return False
        if frame.asked and frame.asked != self.asked:
            return False
        if frame.subject == "quantity":
            return self.quantity is not None
        return frame.subject == "any" or (frame.subject == "number") == self.is_number


def read_items(examples: Sequence[LabelledExample]) -> list[Item]:
    """Return the questions whose every reference names something, in the order of their keys.

    Rows with options or pictures are left out, and so are questions whose references are sentences
    or plain yes and no: there nothing can be put in an answer's place.
    """
    rows: dict[tuple[str, str, tuple[str, ...], str], list[LabelledExample]] = {}
    for example in examples:
        usable = example.task == HiEvalQuickScore.name and example.references
        if usable and not example.choices and not example.images:
            if all(is_entity(reference) for reference in example.references):
                asked = (question_key(example.question), example.variant, example.references)
                # What is Correct where any reference suffices may be Partial where all count.
                rows.setdefault((*asked, example.reference_mode), []).append(example)
    return [Item(members[0], _judged(members)) for _, members in sorted(rows.items())]


def _judged(rows: Sequence[LabelledExample]) -> dict[str, tuple[str, ...]]:
    """Return the responses of each label, each once, in a fixed order."""
    return {
        label: tuple(
            sorted(
                {
                    row.response.strip()
                    for row in rows
                    if row.label == label and 0 < len(row.response.strip()) <= MAX_WHOLE_CHARS
                }
            )
        )
        for label in (CORRECT, PARTIAL, WRONG)
    }
