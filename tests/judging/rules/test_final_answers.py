"""Final answers of reasoned responses, in the layouts of reasoning models."""

from __future__ import annotations

import pytest

from judging.rules.final_answers import final_answer

WORK = "First I double 3, which is 6.\nThen I add 1.\n\n"


UNSURE = [
    r"$\boxed{6}$ or $\boxed{7}$",
    r"$\boxed{7}$, but I am not sure",
    r"\boxed{7} cm",
    "Answer: 6\n\nLet me check.\n\nAnswer: 7",
    "Answer: 7\nAnother answer is 8.",
    "The following is refuted: Answer: 7",
    "They deny it. He wrote: the answer is 7",
    "Towns:\n5\n6\n7",  # the last of a list
    "5\n\n7",
    "So:\n\n- 7",  # an item, or a negative number
    "Answer:\n- 7",
    r"$-\boxed{7}$",
    r"$2\boxed{7}$",
    r"$x \ne \boxed{7}$",
    r"$1/\boxed{7}$",
    r"$\log \boxed{7}$",
    r"It is minus $\boxed{7}$",
    r"It is more than \(\boxed{7}\).",
    r"$\$\boxed{7}$",
    "It cannot be this one:\n\n7",
    "Is it this?\n\n7",
    "",
]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("7", "7"),
        (WORK + "**7**", "7"),
        (WORK + r"So it is $\boxed{7}$.", "7"),
        (WORK + "**Final Answer**\n\n\\[\n\\boxed{\\frac{7}{1}}\n\\]", r"\frac{7}{1}"),
        (WORK + "**Final Answer:** 7", "7"),
        (WORK + "### Answer\n7", "7"),
        (WORK + "#### 7", "7"),
        (WORK + "<answer>7</answer>", "7"),
        (WORK + "The final answer is 7. I hope it is correct.", "7"),
        (WORK + r"\boxed{\text{B}}", "B"),
        ("先算 6。\n所以答案是：7。", "7"),
        ("先算 6。\n**最终答案：** 7", "7"),
        ("At first, the answer is 6? No.\nAnswer: 7", "7"),
        ("I get $\\boxed{6}$, which is wrong.\nAnswer: 7", "7"),
        ("Answer: 7\n\nTo check, I add again.\n\nAnswer: 7", "7"),
        (r"$\boxed{7}$ ... so $\boxed{ 7 }$", "7"),
        ("6. Wait, that is not right.\n\n7", "7"),
        (".7", ".7"),
        (WORK + "The answer is .7.", ".7"),
        (r"The larger root is $x = (\boxed{7})$", "7"),
        (r"Thus \[ \therefore\quad \boxed{7} \]", "7"),
        *((response, None) for response in UNSURE),
    ],
)
def test_final_answer(response: str, answer: str | None) -> None:
    assert final_answer(response) == answer


def test_long_and_hostile_responses_take_linear_time() -> None:
    for text in (r"\boxed{" * 20_000, "Answer: " * 20_000, "final " * 40_000, "* _#" * 50_000):
        assert final_answer(text) is None or len(text)
