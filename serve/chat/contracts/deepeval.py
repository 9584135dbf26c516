"""deepeval 4.3: ``GEval`` with any test case parameters, with a rubric and in strict mode."""

from serve.chat.contract import Contract, PromptLayout, Score, Text, chat_contract

LABELS = {
    "Input": "question",
    "Actual Output": "response",
    "Expected Output": "reference",
    **dict.fromkeys(("Context", "Retrieval Context", "Metadata", "Tags"), "context"),
    **dict.fromkeys(("Expected Tools", "Tools Called"), "context"),
}
GRADED = (
    "an integer between {low} and {high}, %s{skip}\n\nEvaluation Steps:\n{criterion}\n\n"
    "Test Case:\n{labelled}\n\nParameters:\n{listed}\n\n---\n**Example JSON:**"
)
STRICT = (
    "specific information from {listed} in your reason{skip}\n\nEvaluation Steps:\n{labelled}\n"
    "**\nIMPORTANT:"
)


@chat_contract
def deepeval_geval() -> Contract:
    """Define GEval's contract. A rubric is part of the criterion."""
    return Contract(
        name="deepeval-geval",
        harness="deepeval GEval",
        task="criterion",
        layouts=(
            *(PromptLayout(GRADED % word, labels=LABELS) for word in ("with", "based on")),
            PromptLayout(
                STRICT,
                cues=("strictly either 1",),
                labels={"": "criterion", **LABELS},
                form={"score": Score(0, 1, is_integer=True), "reason": Text()},
            ),
        ),
        steps=PromptLayout("\nEvaluation Criteria:\n{criterion}\n\n**\nIMPORTANT:"),
        words={"Pass": "pass", "Fail": "fail"},
        reply="{json}",
        form={"score": Score(0, 10, is_integer=True), "reason": Text()},
        body={"temperature": 0},
    )
