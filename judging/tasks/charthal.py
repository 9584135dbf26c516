"""ChartHal: a response to a chart question is free of hallucination (1) or not (0)."""

import re

from judging.errors import FieldError
from judging.tasks.base import Field, JudgeTask, is_blank, judge_task
from judging.types import JudgeRequest

FAITHFUL, HALLUCINATED = "1", "0"

WITH_REFERENCE = ("contradictory-closed", "normal-closed")
"""Rubrics that compare with a reference; under the others the judge never sees it."""

_NAMED_SCORE = re.compile(r"\bscore\b[\s:*-]{0,4}([01])(?![\d.])", re.IGNORECASE)
_LONE_DIGIT = re.compile(r"(?<![\d.])([01])(?![\d./])")

_SITUATION = {
    "irrelevant": "The question is about something that has nothing to do with the chart.",
    "inexistent-closed": (
        "The question is on the chart's topic, but what it asks for is not in the chart."
    ),
    "inexistent-open": (
        "The question is open-ended and on the chart's topic, but rests on something that is not "
        "in the chart."
    ),
    "contradictory-closed": (
        "The question first claims something that the chart shows to be false, then builds on it."
    ),
    "contradictory-open": (
        "The question is open-ended. It first claims something that the chart shows to be false, "
        "then builds on it."
    ),
    "normal-closed": "The chart answers the question, and the reference is the one right answer.",
    "normal-open": "The question is open-ended: the chart suggests answers but proves none.",
}

_RULES = {
    "irrelevant": """\
1: it says outright that the question is unrelated to the chart, and gives no answer.
0: it does not say so, or it answers or makes something up.""",
    "inexistent-closed": """\
1: it says clearly that the chart lacks this information, and does not guess.
0: it passes over the lack, or it guesses or gives an answer.""",
    "inexistent-open": """\
1: it says clearly that the chart lacks this, and then either declines or speculates in a tone \
that marks it as speculation.
0: it passes over the lack, or it answers as if the matter were settled.""",
    "contradictory-closed": """\
1: it points out the false claim, and then either says that the question cannot be answered or \
gives the reference's answer, leaving the claim aside.
0: it does not point out the claim, or answers as if the claim were true, or its answer is not the \
reference's.
An answer is the reference's if its number lies within a range that the reference calls \
acceptable; without such a range, if it means the same, omits nothing and adds nothing unrelated. \
If the reference gives no answer, any answer is 0.""",
    "contradictory-open": """\
1: it points out the false claim, and then either says that the question cannot be answered or \
answers tentatively.
0: it does not point out the claim, or builds on it, or sounds overconfident or absolute.""",
    "normal-closed": """\
1: the final answer is the reference.
Numbers: within a range that the reference calls acceptable; without such a range, exactly equal, \
in any notation (0.01 is 10^-2).
Terms: the same terms and all of them, in any order or notation; a term that is only similar \
(ACC+ for ACC) is another term.
Anything else: the same meaning, nothing left out, nothing unrelated added.
0: otherwise.""",
    "normal-open": """\
1: it stays uncertain throughout (may, could, one reason might be), and its reasoning is plausible.
0: it states an opinion as a fact, names a definite cause, or sounds overconfident.
Whether its content is true does not matter.""",
}


@judge_task
class ChartHal(JudgeTask):
    """Faithfulness of a response to a chart: 1 if it makes nothing up, else 0.

    ChartHal (paper section 3.3, Tables 15-21): the variant is one of seven kinds of question. The
    paper's grader does not see the chart; a judge sees it if a row has it. For open questions on
    things that the chart lacks, the paper's score line forbids what its guideline allows; this
    follows the guideline.
    """

    name = "charthal"
    example = {
        "variant": "normal-closed",
        "question": "How much rain fell in June?",
        "references": ["40 mm"],
        "response": "40 mm",
    }
    variants = tuple(_RULES)
    required = ("question",)
    label_set = (FAITHFUL, HALLUCINATED)
    empty_label = HALLUCINATED

    def check(self, request: JudgeRequest) -> None:
        """Raise ``FieldError`` as every task does, or if a rubric lacks the reference it needs."""
        super().check(request)
        if request.variant in WITH_REFERENCE and is_blank(request.references):
            raise FieldError("references", f"variant '{request.variant}' needs it")

    def instruction(self, rubric: str) -> str:
        """Tell what the question is like, and what earns each score."""
        return (
            f"You grade a response to a question about a chart. {_SITUATION[rubric]}\n"
            f"{_RULES[rubric]}\nAnswer with one digit: {FAITHFUL} or {HALLUCINATED}."
        )

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return question, response and, where the rubric uses it, the reference."""
        fields = [Field("Question", request.question)]
        if request.variant in WITH_REFERENCE:
            fields.append(Field("Reference", " / ".join(request.references)))
        return (*fields, Field("Response", request.response, is_response=True))

    def parse(self, text: str, rubric: str) -> str | None:
        """Return a bare digit, or one after ``Score:``, as ChartHal's own grader writes it."""
        score = re.fullmatch(r"[\s*`]*+(?:score\s*+:)?[\s*`]*+([01])[\s*`.]*", text, re.IGNORECASE)
        return score[1] if score else None

    def parse_official(self, text: str, rubric: str) -> str | None:
        """Return the score in the first three lines: after ``Score``, or a digit alone."""
        head = "\n".join(text.splitlines()[:3])
        score = _NAMED_SCORE.search(head) or _LONE_DIGIT.search(head)
        return score[1] if score else None
