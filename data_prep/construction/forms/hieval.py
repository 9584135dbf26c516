"""HiEval's annotation screen: the score of a response and, if it is not right, its error type."""

from __future__ import annotations

from collections.abc import Mapping

from data_prep.construction.forms.base import Entry, Filled, Form, agreed_values, form, texts_of
from data_prep.construction.steps.base import Row
from judging.tasks.hieval_ea import IMAGE, OTHER, OVERTHINKING, REASONING, UNANSWERABLE
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG
from judging.types import label_of

_SCORE = Entry(
    "score",
    "How right is the response?",
    options={
        CORRECT: "the response and the answer set agree",
        PARTIAL: "some elements of the answer set, and nothing else",
        WRONG: "an element outside the answer set, no answer, or cut off before one",
    },
)
_ERROR_TYPE = Entry(
    "error_type",
    "What is the main cause?",
    options={
        REASONING: "wrong logic or computation, a condition of the text misread, an answer to "
        "something else",
        IMAGE: "something the picture shows directly is misread, overlooked or invented",
        UNANSWERABLE: "says that conditions are missing or wrong, and gives no answer",
        OVERTHINKING: "breaks off or goes in circles, visibly unfinished",
        OTHER: "anything else: a bare letter or word, or a form that hides the cause",
    },
    asked_if=("score", (PARTIAL, WRONG)),
)


class HiEvalForm(Form):
    """Form that both stages share: how an item is shown, scored and made a labelled example."""

    task: str
    rubric = "plain/all"
    headings = {
        "question": "Question",
        "choices": "Choices",
        "references": "Ground truth",
        "response": "Response",
    }

    def shown(self, row: Row) -> Mapping[str, str]:
        """Show domain, question, ground truth and response; the model stays hidden."""
        domain = texts_of(row.get("metadata") or {}, domain="Domain")
        texts = {**domain, **super().shown(row)}
        prepared = row.get("responses") or ()  # The rows of custos prep have a list of one.
        texts.setdefault("Response", "\n".join(prepared) or "(empty)")
        return texts

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Make a labelled example of the row."""
        values = agreed_values(fillings)
        label, error_type = values["score"], values.get("error_type")
        return {
            **row,
            "task": self.task,
            "label": label_of(label, error_type),
            **({"error_type": error_type} if error_type else {}),
            "annotators": list(fillings),
        }


@form
class QuickScore(HiEvalForm):
    """Score of a response."""

    name = task = "hieval-qs"
    summary = "is a response Correct, Partial or Wrong?"
    guide = (
        "Compare the response with the ground truth. Extra or wrong answers make it Wrong, never "
        "Partial. A response that ends before a final answer is Wrong, even if the right value "
        "occurs in it."
    )
    entries = (_SCORE,)


@form
class ErrorAnalysis(HiEvalForm):
    """Score of a response, and the main error type if it is not right."""

    name = task = "hieval-ea"
    summary = "the score, and the type of the error if there is one"
    guide = f"{QuickScore.guide} If it is Partial or Wrong, name the main cause, one only."
    entries = (_SCORE, _ERROR_TYPE)
