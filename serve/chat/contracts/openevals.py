"""openevals 0.2: ``create_llm_as_judge`` with its ``CORRECTNESS_PROMPT``, which sends a schema."""

from serve.chat.contract import Contract, PromptLayout, Score, Text, chat_contract

PROPERTIES = {"reasoning": {"type": "string"}, "score": {"type": "boolean"}}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": [*PROPERTIES]}


@chat_contract
def openevals() -> Contract:
    """Define the contract; ``continuous`` and ``choices`` want a number instead of a boolean."""
    return Contract(
        name="openevals",
        harness="openevals CORRECTNESS_PROMPT",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "\n<input>\n{question}\n</input>\n\n<output>\n{response}\n</output>\n\n"
                "Use the reference outputs{skip}\n\n<reference_outputs>\n{reference}\n"
                "</reference_outputs>"
            ),
        ),
        words={"Correct": "true", "Wrong": "false"},
        reply="{json}",
        form={"reasoning": Text(), "score": Score(0, 1)},
        body={"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
    )
