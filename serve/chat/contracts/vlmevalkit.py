"""Benchmarks that VLMEvalKit grades: MathVerse, whose reply is a digit, and MM-Vet."""

from serve.chat.contract import Contract, Label, PromptLayout, chat_contract

BODY = {"temperature": 0, "max_tokens": 2048}


@chat_contract
def mathverse() -> Contract:
    """Define MathVerse's contract. The prompt indents the item, but not its examples."""
    return Contract(
        name="mathverse",
        harness="MathVerse (VLMEvalKit)",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "    [Question]: {question}\n    [Standard Answer]: {reference}\n"
                "    [Model_answer] : {response}\n    Judgement:"
            ),
        ),
        words={"Correct": "1", "Wrong": "0"},
        form={"score": Label()},
        body=BODY,
    )


@chat_contract
def mmvet() -> Contract:
    """Define MM-Vet's contract. The reply is the last cell of a table, 0 to 1."""
    return Contract(
        name="mmvet",
        harness="MM-Vet (VLMEvalKit)",
        task="hieval-qs",
        layouts=(PromptLayout("| 1.0\n\n{question} | {reference} | {response} | "),),
        words={"Correct": "1.0", "Partial": "0.5", "Wrong": "0.0"},
        form={"score": Label()},
        body=BODY,
    )
