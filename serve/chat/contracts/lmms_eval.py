"""lmms-eval's binary and correctness judges. The reply is a digit or a word, as the prompt asks."""

from dataclasses import replace

from serve.chat.contract import Contract, Label, PromptLayout, chat_contract

YES_NO = {"Correct": "Yes", "Wrong": "No"}
RULE = "-" * 32

BINARY = PromptLayout(
    "\nQuestion:\n```\n{question}\n```\nGround Truth Answer:\n```\n{reference}\n```\n"
    "Model Prediction:\n```\n{response}\n```\n\n# Evaluation Rules",
    cues=("output 1 for",),
)
CORRECTNESS = PromptLayout(
    f"\nQuestion: \n{{question}}\n{RULE}\nCorrect Answer:\n{{reference}}\n{RULE}\n"
    f"Solution: \n{{response}}\n{RULE}",
    cues=('only return "1"',),
)


@chat_contract
def lmms_eval() -> Contract:
    """Define lmms-eval's contract."""
    return Contract(
        name="lmms-eval",
        harness="lmms-eval",
        task="hieval-qs",
        layouts=(
            BINARY,
            replace(BINARY, cues=("output yes for",), words=YES_NO),
            CORRECTNESS,
            replace(CORRECTNESS, cues=('only return "yes"',), words=YES_NO),
        ),
        words={"Correct": "1", "Wrong": "0"},
        form={"score": Label()},
        body={"temperature": 0, "max_tokens": 1024},
    )
