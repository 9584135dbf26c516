"""HiEval error analysis: the score of a response and, unless it is right, the main reason."""

from judging.tasks.base import judge_task
from judging.tasks.hieval_qs import CORRECT, PARTIAL, TOLERANCE, WRONG, HiEvalTask

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
    "any-partial": """\
Each reference alone is an acceptable answer. Correct: the final answer gives all that one \
reference says. Partial: it gives a part of what one says, lacks the rest, and adds nothing wrong. \
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
class HiEvalErrorAnalysis(HiEvalTask):
    """Score of a response and, unless it is right, the type of its error, from text and image.

    HiEval-EA (paper section 3.2). ``Correct`` never carries a type; ``Partial`` and ``Wrong``
    always do. Under ``reference_mode`` ``any`` there is no ``Partial``; under ``any-partial`` there
    is.
    """

    name = "hieval-ea"
    example = {
        "question": "How much did it rain in May and June together?",
        "references": ["90 mm"],
        "reference_mode": "all",
        "response": "It rained 50 mm in May and 40 mm in June, so 80 mm together.",
    }
    empty_label = f"{WRONG}; {OTHER}"

    def instruction(self, rubric: str) -> str:
        """List all criteria of the paper for scores and error types."""
        variant, mode = rubric.split("/")
        tolerance = TOLERANCE if variant == "tolerance" else ""
        errors = WRONG if mode == "any" else f"{PARTIAL} or {WRONG}"
        return (
            "You grade a response to a question about an image.\n"
            f"{_SCORES[mode]}{tolerance}\n{_TYPES}\n"
            f"Answer {CORRECT}, or {errors} with the cause: {WRONG}; {REASONING}."
        )

    def labels(self, rubric: str) -> tuple[str, ...]:
        """Return ``Correct``, then every error type of each other score."""
        scores = (WRONG,) if rubric.endswith("/any") else (PARTIAL, WRONG)
        return (
            CORRECT,
            *(f"{score}; {error_type}" for score in scores for error_type in ERROR_TYPES),
        )
