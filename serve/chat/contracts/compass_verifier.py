"""CompassVerifier's prompts; the reply is a letter. VLMEvalKit writes them all on one line."""

from serve.chat.contract import Contract, PromptLayout, chat_contract

LINES = (
    "<Original Question Begin>:\n{question}\n<Original Question End>\n"
    "<Standard Answer Begin>:\n{reference}\n<Standard Answer End>\n"
    "<Candidate's Answer Begin>: \n{response}\n<Candidate's Answer End>"
)
STEP_BY_STEP = (
    "<Original Question Begin>\n{question}\n<Original Question End>\n\n"
    "<Standard Answer Begin>\n{reference}\n<Standard Answer End>\n\n"
    "<Candidate's Answer Begin>\n{response}\n<Candidate's Answer End>"
)


@chat_contract
def compass_verifier() -> Contract:
    """Define CompassVerifier's contract."""
    return Contract(
        name="compass-verifier",
        harness="CompassVerifier",
        task="hieval-qs",
        layouts=tuple(
            PromptLayout(template)
            for template in (
                LINES,
                STEP_BY_STEP,
                " ".join(LINES.split()),
                " ".join(STEP_BY_STEP.split()),
            )
        ),
        words={"Correct": "A", "Wrong": "B"},
        body={"temperature": 0, "max_tokens": 2048},
    )
