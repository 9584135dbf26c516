"""HiEval error analysis: the score of a response and, when it is not right, the main reason."""

from __future__ import annotations

from judging.tasks.base import Field, JudgeTask, Ruling, judge_task
from judging.tasks.hieval_qs import CORRECT, PARTIAL, TOLERANCE, WRONG, answer_fields
from judging.types import JudgeRequest

REASONING = "Reasoning Error"
IMAGE = "Image Misunderstanding"
UNANSWERABLE = "Unanswerable"
OVERTHINKING = "Overthinking"
OTHER = "Other"
ERROR_TYPES = (REASONING, IMAGE, UNANSWERABLE, OVERTHINKING, OTHER)

_SCORES = {
    "all": """\
The ground truth is a set of one or more elements. Correct: the final answer gives every element \
and nothing else. Partial: it gives some, lacks others, and adds none from outside the set. Wrong: \
it gives any other element, or no answer, or is cut off before a final answer.""",
    "any": """\
Each reference alone is an acceptable answer. Correct: the final answer means the same as one. \
Wrong: it means something else, or there is no final answer.""",
}

_TYPES = f"""\
Unless it is Correct, name the one main cause:
{REASONING}: the logic or a computation fails, a condition in the text is misread, or the answer \
is beside the question.
{IMAGE}: something the image shows directly is misread, overlooked or invented.
{UNANSWERABLE}: it claims that conditions are missing, incomplete or incorrect, and gives no answer.
{OVERTHINKING}: it goes in circles or stops abruptly, the reasoning visibly unfinished, often \
without a closing mark.
{OTHER}: anything else, such as a bare letter or word without reasoning or unreadable formatting, \
so that the cause cannot be told."""


@judge_task
class HiEvalErrorAnalysis(JudgeTask):
    """HiEval-EA (paper section 3.2): image, question, ground truth, response; score and error type.

    ``Correct`` never carries a type; ``Partial`` and ``Wrong`` always do. Under ``reference_mode``
    ``any`` there is no ``Partial``.
    """

    name = "hieval-ea"
    variants = ("plain", "tolerance")
    required = ("question", "references")

    def rubric(self, request: JudgeRequest) -> str:
        """``<variant>/<reference mode>``."""
        return f"{request.variant}/{request.reference_mode}"

    def instruction(self, rubric: str) -> str:
        """All criteria of the paper for scores and error types."""
        variant, mode = rubric.split("/")
        tolerance = TOLERANCE if variant == "tolerance" else ""
        errors = f"{PARTIAL} or {WRONG}" if mode == "all" else WRONG
        return (
            "You grade a response to a question about an image.\n"
            f"{_SCORES[mode]}{tolerance}\n{_TYPES}\n"
            f"Answer {CORRECT}, or {errors} with the cause: {WRONG}; {REASONING}."
        )

    def labels(self, rubric: str) -> tuple[str, ...]:
        """``Correct``, then every error type of each other score."""
        scores = (PARTIAL, WRONG) if rubric.endswith("/all") else (WRONG,)
        return (CORRECT, *(f"{score}; {kind}" for score in scores for kind in ERROR_TYPES))

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Question, options, ground truth, response; images stand before them."""
        return answer_fields(request)

    def rule(self, request: JudgeRequest) -> Ruling | None:
        """An empty response is wrong by definition, for a cause that cannot be told."""
        if request.response.strip():
            return None
        return Ruling("scored", f"{WRONG}; {OTHER}", "the response is empty")

    def parse(self, text: str, rubric: str) -> str | None:
        """A full label, apart from case, space and closing punctuation."""
        said = " ".join(text.replace(";", "; ").split()).strip(" .!*\"'`").casefold()
        return next((label for label in self.labels(rubric) if label.casefold() == said), None)
