"""MM-Vet's grader in VLMEvalKit and lmms-eval. The reply is the last cell of a table, 0 to 1."""

from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout


@chat_contract
def mmvet() -> Contract:
    """Return MM-Vet's contract."""
    return Contract(
        name="mmvet",
        harness="MM-Vet (VLMEvalKit)",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "| 1.0\n\n{question} | {reference} | {response} | ",
                separators={"<AND>": "all", "<OR>": "any"},
            ),
        ),
        words={"Correct": "1.0", "Partial": "0.5", "Wrong": "0.0"},
        json_key="score",
        body={"temperature": 0, "max_tokens": 2048},
    )
