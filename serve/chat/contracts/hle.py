"""Humanity's Last Exam, as lighteval 0.13 and HLE's own script ask."""

from serve.chat.contract import Contract, Fixed, Label, PromptLayout, Text, chat_contract


@chat_contract
def hle() -> Contract:
    """Define HLE's contract. The confidence is that of the response, which is not read: 100."""
    return Contract(
        name="hle",
        harness="HLE (lighteval)",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "\n[question]: {question}\n\n[response]: {response}\n\nYour judgement must be{skip}"
                "\n\n[correct_answer]: {reference}\n\nreasoning: Explain"
            ),
        ),
        words={"Correct": "yes", "Wrong": "no"},
        reply="{json}",
        form={
            "extracted_final_answer": Text(),
            "reasoning": Text(),
            "correct": Label(),
            "confidence": Fixed(100),
            "strict": Fixed(True),
        },
    )
