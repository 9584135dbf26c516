"""CHARTOM's questionnaire: people answer the FACT question of each chart.

Nobody has to agree: the share without an acceptable answer is the chart's HMI. Both versions of a
pair are on the sheet, in random order.
"""

from __future__ import annotations

from collections.abc import Mapping

from data_prep.construction.forms.base import Entry, Filled, Form, form
from data_prep.construction.steps.base import Row

NO_ANSWER = "no answer"


@form
class ChartomQuestionnaire(Form):
    """Questionnaire of FACT questions."""

    name = "chartom"
    summary = "what do people read off a chart? (FACT questions, for HMI)"
    guide = (
        "Answer each question by the chart, as you would when you come across it: do not go back "
        "to other charts. Write numbers with their unit, and an order as A, B, C. Write "
        f"'{NO_ANSWER}' if you cannot say."
    )
    entries = (Entry("answer", "Your answer", "text", compared=False),)
    headings = {"question": "Question", "choices": "Choices"}
    per_row = 1

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Add everybody's answers to the item; ``None`` for none, as HMI counts it.

        They replace an HMI that was given, such as a borrowed one.
        """
        answers = [str(filled["answer"]) for filled in fillings.values()]
        given = [None if answer.casefold() == NO_ANSWER else answer for answer in answers]
        answered = {**row, "human_answers": [*(row.get("human_answers") or ()), *given]}
        answered.pop("hmi", None)
        return answered
