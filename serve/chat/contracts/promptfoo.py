"""promptfoo 0.121: ``llm-rubric``, ``factuality``, ``model-graded-closedqa`` and ``g-eval``.

It looks for braces without regard to quotation marks, and takes the first object that it finds; an
object without ``pass`` passes. Where it finds none it looks for a letter, and E passes.
"""

from serve.chat.contract import (
    Boolean,
    Contract,
    Label,
    PromptLayout,
    Sample,
    Score,
    Text,
    chat_contract,
)

BODY = {"temperature": 0, "max_tokens": 1024}
SAMPLE = Sample.of_task("criterion", wrong="It opens at nine.")


@chat_contract
def promptfoo_rubric() -> Contract:
    """Define the contract of ``llm-rubric``, which sends no question."""
    return Contract(
        name="promptfoo-rubric",
        harness="promptfoo llm-rubric",
        task="criterion",
        layouts=(
            PromptLayout(
                "<Output>\n{response}\n</Output>\n<Rubric>\n{criterion}\n</Rubric>",
                system="user-specified rubric{skip}",
                sample=SAMPLE,
            ),
        ),
        words={"Pass": "pass", "Fail": "fail"},
        reply="{json}",
        form={"pass": Boolean(), "score": Score(0, 1), "reason": Text()},
        body=BODY,
    )


@chat_contract
def promptfoo_factuality() -> Contract:
    """Define the contract of ``factuality``: of its five letters D alone fails."""
    return Contract(
        name="promptfoo-factuality",
        harness="promptfoo factuality",
        task="hieval-qs",
        layouts=(
            PromptLayout(
                "<question>\n{question}\n</question>\n\n<expert_answer>\n{reference}\n"
                "</expert_answer>\n\n<submitted_answer>\n{response}\n</submitted_answer>",
                system="factuality evaluator{skip}",
            ),
        ),
        words={"Correct": "C", "Wrong": "D"},
        reply="{json}",
        form={"category": Label(), "reason": Text()},
        body=BODY,
    )


@chat_contract
def promptfoo_closedqa() -> Contract:
    """Define the contract of ``model-graded-closedqa``: a lone system message."""
    return Contract(
        name="promptfoo-closedqa",
        harness="promptfoo model-graded-closedqa",
        task="criterion",
        layouts=(
            PromptLayout(
                "[BEGIN DATA]\n***\n[Task]: {question}\n***\n[Submission]: {response}\n***\n"
                "[Criterion]: {criterion}\n***\n[END DATA]",
                role="system",
                cues=('"y" or "n"',),
                sample=SAMPLE,
            ),
        ),
        words={"Pass": "Y", "Fail": "N"},
        body=BODY,
    )


@chat_contract
def promptfoo_geval() -> Contract:
    """Define the contract of ``g-eval``, whose scale ends at 10."""
    return Contract(
        name="promptfoo-geval",
        harness="promptfoo g-eval",
        task="criterion",
        layouts=(
            PromptLayout(
                "\n**Evaluation Criteria**\n{criterion}\n\n**Evaluation Steps**\n- {skip}\n\n"
                "**Prompt**\n{question}\n\n**Reply**\n{response}\n\n**OUTPUT FORMAT**",
                sample=SAMPLE,
            ),
        ),
        steps=PromptLayout("\n**EVALUATION CRITERIA**\n{criterion}\n\n**OUTPUT FORMAT**"),
        words={"Pass": "pass", "Fail": "fail"},
        reply="{json}",
        form={"score": Score(0, 10, is_integer=True), "reason": Text()},
        body=BODY,
    )
