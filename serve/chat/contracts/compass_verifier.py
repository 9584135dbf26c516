"""CompassVerifier's prompts, of which VLMEvalKit writes all on one line: a letter."""

from serve.chat.contract import Contract, Layout

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

CONTRACT = Contract(
    name="compass-verifier",
    harness="CompassVerifier",
    task="hieval-qs",
    layouts=tuple(
        Layout(template)
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
