"""ChartHal: a response to a chart question is free of hallucination (1) or not (0)."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from judging.errors import CustosError, FieldError
from judging.fingerprint import digest
from judging.tasks.base import BareLabelTask, Field, judge_task, task_names
from judging.types import JudgeRequest

FAITHFUL, HALLUCINATED = "1", "0"

WITH_REFERENCE = ("contradictory-closed", "normal-closed")
"""Rubrics that compare with a reference; under the others the judge never sees it."""

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
class ChartHal(BareLabelTask):
    """Faithfulness of a response to a chart: 1 if it makes nothing up, else 0; text alone.

    ChartHal (paper section 3.3, Tables 15-21): the variant is one of seven kinds of question. For
    open questions on things that the chart lacks, the paper's score line forbids what its guideline
    allows; this follows the guideline.
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
        if request.variant in WITH_REFERENCE and not any(request.references):
            raise FieldError("references", f"variant '{request.variant}' needs it")

    def instruction(self, rubric: str) -> str:
        """Return what the question is like, and what earns each score."""
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
        score = re.fullmatch(r"[\s*`]*(?:score\s*:)?[\s*`]*([01])[\s*`.]*", text, re.IGNORECASE)
        return score[1] if score else None


def register_rubrics(path: Path) -> str:
    """Declare a ChartHal task with a user's own instructions, to repeat a published grader.

    Args:
        path: YAML file that maps every rubric (``ChartHal.variants``) to its instruction.

    Returns:
        The task's name, which holds a hash of the instructions. Judges trained on ``charthal``
        refuse it, as they were not trained for it.

    Raises:
        CustosError: If the file cannot be read, a rubric is missing or one is unknown.
    """
    instructions = _read_rubrics(path)
    task_name = f"charthal:{digest(instructions)[:8]}"
    if task_name not in task_names():

        @judge_task
        class RewordedChartHal(ChartHal):
            """The same rubrics and labels in the user's words."""

            name = task_name

            def instruction(self, rubric: str) -> str:
                """Return the instruction of the file."""
                return instructions[rubric]

    return task_name


def _read_rubrics(path: Path) -> dict[str, str]:
    try:
        rubrics = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise CustosError(f"{path}: cannot be read: {error}") from None
    if not isinstance(rubrics, dict):
        raise CustosError(f"{path}: expected every rubric's name and its text")
    if unknown := [name for name in rubrics if name not in ChartHal.variants]:
        raise CustosError(
            f"{path}: rubric '{unknown[0]}' is not one of {', '.join(ChartHal.variants)}"
        )
    for name in ChartHal.variants:
        if not isinstance(rubrics.get(name), str) or not rubrics[name].strip():
            raise CustosError(f"{path}: rubric '{name}' has no text")
    return {name: rubrics[name].strip() for name in ChartHal.variants}
