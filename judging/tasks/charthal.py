"""ChartHal: a response to a chart question is free of hallucination (1) or not (0)."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from judging.errors import CustosError, FieldError
from judging.fingerprint import digest
from judging.tasks.base import Field, JudgeTask, Ruling, judge_task, task_names
from judging.types import JudgeRequest

FAITHFUL, HALLUCINATED = "1", "0"

WITH_REFERENCE = ("contradictory-closed", "normal-closed")
"""Rubrics that compare with a reference; under the others the judge never sees one."""

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
    """ChartHal (paper section 3.3, Tables 15-21): seven rubrics, text only, two labels.

    For open questions on things that the chart lacks, the paper's score line forbids what its
    guideline allows; this follows the guideline.
    """

    name = "charthal"
    variants = tuple(_RULES)
    required = ("question",)

    def check(self, request: JudgeRequest) -> None:
        """As for every task; the rubrics that compare with a reference also need one."""
        super().check(request)
        if request.variant in WITH_REFERENCE and not any(request.references):
            raise FieldError("references", f"variant '{request.variant}' needs it")

    def rubric(self, request: JudgeRequest) -> str:
        """The variant."""
        return request.variant

    def instruction(self, rubric: str) -> str:
        """The situation the question puts the responder in, and what earns each score."""
        return (
            f"You grade a response to a question about a chart. {_SITUATION[rubric]}\n"
            f"{_RULES[rubric]}\nAnswer with one digit: {FAITHFUL} or {HALLUCINATED}."
        )

    def labels(self, rubric: str) -> tuple[str, ...]:
        """``1``, ``0``."""
        return (FAITHFUL, HALLUCINATED)

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Question, reference where the rubric uses it, response."""
        fields = [Field("Question", request.question)]
        if request.variant in WITH_REFERENCE:
            fields.append(Field("Reference", " / ".join(request.references)))
        return (*fields, Field("Response", request.response, is_response=True))

    def rule(self, request: JudgeRequest) -> Ruling | None:
        """An empty response is 0 under every rubric."""
        if request.response.strip():
            return None
        return Ruling("scored", HALLUCINATED, "the response is empty")

    def parse(self, text: str, rubric: str) -> str | None:
        """A bare digit, or one after ``Score:`` as ChartHal's own grader writes it."""
        found = re.fullmatch(r"[\s*`]*(?:score\s*:)?[\s*`]*([01])[\s*`.]*", text, re.IGNORECASE)
        return found[1] if found else None


def register_rubrics(path: Path) -> str:
    """Register a ChartHal task under a user's own wording, to repeat a published grader.

    Args:
        path: YAML file: every rubric's name (``ChartHal.variants``) to its instruction.

    Returns:
        The task's name, which holds a hash of the wording. Judges trained on ``charthal`` were not
        trained for it and refuse it.

    Raises:
        CustosError: If the file cannot be read, a rubric is missing or one is unknown.
    """
    instructions = _read_rubrics(path)
    own_name = f"charthal:{digest(instructions)[:8]}"
    if own_name not in task_names():

        @judge_task
        class OwnWording(ChartHal):
            """The same rubrics and labels in other words."""

            name = own_name

            def instruction(self, rubric: str) -> str:
                """As the file says."""
                return instructions[rubric]

    return own_name


def _read_rubrics(path: Path) -> dict[str, str]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise CustosError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise CustosError(f"{path}: expected every rubric's name and its text")
    if unknown := [name for name in found if name not in ChartHal.variants]:
        raise CustosError(
            f"{path}: rubric '{unknown[0]}' is not one of {', '.join(ChartHal.variants)}"
        )
    for name in ChartHal.variants:
        if not isinstance(found.get(name), str) or not found[name].strip():
            raise CustosError(f"{path}: rubric '{name}' has no text")
    return {name: found[name].strip() for name in ChartHal.variants}
