"""ragas 0.4: ``AnswerAccuracy`` of ``ragas.metrics.collections``, and the older one.

Each asks two prompts about an answer and takes the mean.
"""

from serve.chat.contract import Contract, Label, PromptLayout, chat_contract

RATINGS = {"Correct": "4", "Partial": "2", "Wrong": "0"}
FIELDS = {"query": "question", "user_answer": "response", "reference_answer": "reference"}
SWAPPED = {"query": "question", "user_answer": "reference", "reference_answer": "response"}
OBJECT = "\nNow perform the same with the following input\ninput: {json}\nOutput:"


@chat_contract
def ragas_answer_accuracy() -> Contract:
    """Define the contract of the newer one, whose second prompt gets the texts the wrong way."""
    return Contract(
        name="ragas-answer-accuracy",
        harness="ragas AnswerAccuracy",
        task="hieval-qs",
        layouts=(
            PromptLayout(OBJECT, labels=FIELDS, cues=("world class",), reference_mode="all"),
            PromptLayout(OBJECT, labels=SWAPPED, cues=("i will rate",), reference_mode="all"),
        ),
        words=RATINGS,
        reply="{json}",
        form={"rating": Label()},
        body={"temperature": 0.01, "top_p": 0.1, "response_format": {"type": "json_object"}},
    )


@chat_contract
def ragas_answer_accuracy_old() -> Contract:
    """Define the contract of the older one, which takes any 0 in a reply for the rating."""
    return Contract(
        name="ragas-answer-accuracy-old",
        harness="ragas AnswerAccuracy (older)",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "\n### Question: {question}\n### User Answer: {response}\n"
                "### Reference Answer: {reference}\nThe rating is:",
                reference_mode="all",
            ),
            PromptLayout(
                "\n\nQuestion: {question}\n\nReference Answer: {reference}\n\n"
                "User Answer: {response}\n\nRating:",
                reference_mode="all",
            ),
        ),
        words=RATINGS,
        body={"temperature": 0.1, "n": 1},
    )
