"""SimpleVQA's ``llm_as_a_vqa_judger.py``, which VLMEvalKit sends too.

The prompt is Chinese; the reply is a JSON object.
"""

from judging.tasks.simplevqa import CHINESE
from serve.chat.contract import Contract, chat_contract
from serve.chat.layout import PromptLayout, Sample


@chat_contract
def simplevqa_chinese() -> Contract:
    """Return the contract of SimpleVQA's Chinese prompt."""
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
        json_key="预测答案0",
        body={"temperature": 1},
    )
