"""mlflow 3.17: its judges ``Correctness`` and ``make_judge``. Both send a schema."""

from typing import Any

from serve.chat.contract import Contract, Label, PromptLayout, Slot, Text, chat_contract

FORM: dict[str, Slot] = {"result": Label(), "rationale": Text()}


def _body(result: str) -> dict[str, Any]:
    properties = {"result": {"type": result}, "rationale": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}


@chat_contract
def mlflow_correctness() -> Contract:
    """Define the contract of ``Correctness``: the reference is a claim, the response a document.

    Several expected facts are one claim.
    """
    return Contract(
        name="mlflow-correctness",
        harness="mlflow Correctness",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "\n<question>{question}</question>\n<claim>{reference}</claim>\n"
                "<document>{question} - {response}</document>",
                reference_mode="all",
            ),
        ),
        words={"Correct": "yes", "Wrong": "no"},
        reply="{json}",
        form=FORM,
        body=_body("string"),
    )


@chat_contract
def mlflow_judge() -> Contract:
    """Define the contract of ``make_judge``: the instructions are the criterion."""
    return Contract(
        name="mlflow-judge",
        harness="mlflow make_judge",
        task="criterion",
        layouts=(
            PromptLayout(
                "{lines}",
                system="Your task: {criterion}.\n\nYou *must* format",
                labels={"inputs": "question", "outputs": "response", "expectations": "reference"},
            ),
        ),
        words={"Pass": "yes", "Fail": "no"},
        reply="{json}",
        form=FORM,
        body=_body("boolean"),
    )
