"""The graders of SimpleQA and SimpleVQA. Each prompt has its examples before the new question."""

from judging.tasks.simplevqa import CHINESE
from serve.chat.contract import Contract, Label, PromptLayout, Sample, chat_contract

LETTERS = {"Correct": "A", "Incorrect": "B", "Not attempted": "C"}
ENGLISH = (
    "new question example{skip}\nQuestion: {question}\n\nCorrect Answer: {reference}\n\n"
    "Predicted Answer: {response}\n"
)


@chat_contract
def simpleqa() -> Contract:
    """Define the contract of SimpleQA, and of benchmarks made after it."""
    return Contract(
        name="simpleqa",
        harness="SimpleQA",
        task="simplevqa",
        layouts=(
            PromptLayout(
                "Here is a new example{skip}\nQuestion: {question}\nGold target: {reference}\n"
                "Predicted answer: {response}\n```\n\nGrade",
                variant="english",
                preamble=(
                    "\nFirst come graded answers, then a new example.\n```\nQuestion: 1 + 1?\n"
                    "Gold target: 2\nPredicted answer 1: Two.\nPredicted answer: 3\n```\n"
                ),
            ),
        ),
        words=LETTERS,
        refusal_status=400,  # simple-evals sends for ever after any other
    )


@chat_contract
def simplevqa() -> Contract:
    """Define the contract of SimpleVQA's English prompt, as its paper prints it."""
    return Contract(
        name="simplevqa",
        harness="SimpleVQA (English)",
        task="simplevqa",
        layouts=(
            PromptLayout(ENGLISH + '""\n\nEvaluate', variant="english"),
            PromptLayout(ENGLISH.replace("\n\n", "\n") + "```\n\nEvaluate", variant="english"),
        ),
        words=LETTERS,
    )


@chat_contract
def simplevqa_chinese() -> Contract:
    """Define the contract of ``llm_as_a_vqa_judger.py``, which VLMEvalKit sends too."""
    return Contract(
        name="simplevqa-chinese",
        harness="SimpleVQA (Chinese) and VLMEvalKit",
        task="simplevqa",
        layouts=(
            PromptLayout(
                "\n问题: {question}\n正确答案: {reference}\n预测答案: \n[预测答案0]：{response}\n"
                "```\n\n请严格",
                forbidden=("[预测答案1]：",),  # two answers in one prompt would need two verdicts
                variant="chinese",
                sample=Sample("法国的首都是哪里？", "巴黎", "法国的首都是巴黎。", "是罗马。"),
            ),
        ),
        words=CHINESE,
        reply='{"预测答案0": "{label}"}',
        form={"预测答案0": Label()},
        body={"temperature": 1},
    )
