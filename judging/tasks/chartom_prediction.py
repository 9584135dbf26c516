"""CHARTOM's prediction: the share of readers that a response expects a chart to mislead."""

from __future__ import annotations

from judging.errors import FieldError
from judging.rules.quantities import parse_fraction
from judging.tasks.base import BareLabelTask, Field, Ruling, judge_task
from judging.types import JudgeRequest

STATED, NOT_STATED = "Stated", "Not stated"

_INSTRUCTION = f"""\
Somebody was asked what share of its readers a chart will mislead, and to begin with the number.
{STATED}: the response begins with one share from 0 to 1, or a percentage.
{NOT_STATED}: it begins with something else, with a range, or states no share.
Answer with one of: {STATED}, {NOT_STATED}."""


@judge_task
class ChartomPrediction(BareLabelTask):
    """Share of readers whom a chart misleads, as a response predicts it; read by rule alone.

    CHARTOM MIND, prediction part (paper section 2.3). The score is the share. The reference, if
    there is one, is the measured share (HMI); then the message states the squared error.
    """

    name = "chartom-prediction"
    example = {
        "question": "What share of its readers will this chart mislead, and why?",
        "references": ["0.3"],
        "response": "0.2: most readers will notice where the axis begins.",
    }
    variants = ("plain",)
    required = ("question",)
    label_set = (STATED, NOT_STATED)
    empty_label = NOT_STATED
    has_rules = True

    def check(self, request: JudgeRequest) -> None:
        """Raise ``FieldError`` as every task does, or if the reference is no share."""
        super().check(request)
        if request.references:
            _share(request.references)

    def rule_if_certain(self, request: JudgeRequest) -> Ruling:
        """Read the share that the response begins with, or say that it states none."""
        predicted = parse_fraction(request.response)[0]
        if predicted is None:
            return Ruling("scored", NOT_STATED, "the response begins with no share from 0 to 1")
        error = ""
        if request.references:
            measured = _share(request.references)
            error = f"; squared error {(predicted - measured) ** 2:.4g} from {measured:g}"
        return Ruling("scored", STATED, f"a rule reads {predicted:g}{error}", predicted)

    def score_range(self) -> tuple[float, float]:
        """Return 0 and 1."""
        return (0.0, 1.0)

    def instruction(self, rubric: str) -> str:
        """Return what states a share."""
        return _INSTRUCTION

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return the question and the response."""
        return (
            Field("Question on the chart", request.question),
            Field("Response", request.response, is_response=True),
        )


def _share(references: tuple[str, ...]) -> float:
    """Return the one share that the references state.

    Raises:
        FieldError: If they state none, or several.
    """
    try:
        [text] = references
    except ValueError:
        text = ""
    share, rest = parse_fraction(text)
    if share is None or rest:
        raise FieldError("references", "expected one share from 0 to 1, such as '0.3', or none")
    return share
