"""Thoughts of reasoning models: which text is left of a response, for whoever grades it."""

import pytest

from judging.judge import Judge
from judging.reasoning import without_thoughts
from judging.tasks import get_task
from judging.types import JudgeRequest
from tests.judging.made_up import ask

ANALYSIS = "<|channel|>analysis<|message|>19 or 20?<|end|>"

BLOCKS = [
    ("<think>20? No.</think>19", "19"),
    ("\n<think>\n20?\n\nNo.\n</think>\n\n19 apples", "19 apples"),
    ("\ufeff<THINKING>20?</THINKING> 19", "19"),
    ("<reasoning>20?</reasoning>\n<answer>19</answer>", "<answer>19</answer>"),
    ("<seed:think>20?</seed:think>19", "19"),
    ("◁think▷20?◁/think▷19", "19"),
    ("<|START_THINKING|>20?<|END_THINKING|>19", "19"),
    ("<|channel>thought\n20?<channel|>19", "19"),
    ("<think>a<think>b</think>c</think>19", "19"),
    ("<think>He wrote `</think>` there.</think>19", "19"),
    ("<think>20?</think>19\n<think>or 20?</think>\napples", "19\n\napples"),
    ("Sure. <think>20?</think> It is 19.", "Sure.  It is 19."),
    # The mark that begins the block was in the prompt.
    ("Twenty, or rather less.\n</think>\n\n19", "19"),
    ("Twenty, or rather less. </think> 19", "19"),
    ("A <think> mark was in the prompt.\n</think>\n19", "19"),
    # What is never closed never became an answer.
    ("<think>It could be 19, or", ""),
    ("<think>20?</think>\n<think>or 19", ""),
    ("Twenty.\n</think>", ""),
    # gpt-oss
    (f"{ANALYSIS}<|start|>assistant<|channel|>final<|message|>19<|return|>", "19"),
    ("<|channel|>final <|constrain|>json<|message|>[19]", "[19]"),
    (f"{ANALYSIS}19", "19"),
    (ANALYSIS.removesuffix("<|end|>"), ""),
    ("analysisIt may be 20. No.assistantfinal19", "19"),
]


@pytest.mark.parametrize(("response", "answer"), BLOCKS)
def test_blocks_of_thoughts_are_left_out(response: str, answer: str) -> None:
    assert without_thoughts(response) == answer


@pytest.mark.parametrize(
    "text",
    [
        *("", "  19 ", "Use `<think>` and `</think>` around them.", "<thinker>19</thinker>"),
        *('The marks are "<think>" and "</think>".', "The </think> tag ends the block."),
        *("The block ends with </think>", "19\n<think>\nOr was it", "<thınk>20?</thınk>19"),
        "```xml\n<think>\n20?\n</think>\n```\nThat is the form.",
    ],
)
def test_what_only_speaks_of_marks_is_text(text: str) -> None:
    assert without_thoughts(text) == text


def test_the_judge_reads_what_is_left(judge: Judge) -> None:
    """A response with thoughts gets the verdict of its answer alone, and the raw text stays."""
    thinking = ask("<think>Twenty apples.</think>\nNineteen apples.")
    with_thoughts, alone, kept = judge.grade(
        [thinking, ask("Nineteen apples."), thinking.model_copy(update={"reasoning": "keep"})]
    )
    assert with_thoughts.probabilities == pytest.approx(alone.probabilities, rel=1e-5)
    assert kept.probabilities != pytest.approx(alone.probabilities, rel=1e-3)
    assert with_thoughts.message
    assert alone.message is kept.message is None
    assert thinking.responses == ("<think>Twenty apples.</think>\nNineteen apples.",)


def test_a_response_that_never_leaves_its_thoughts_is_empty(judge: Judge) -> None:
    verdicts = list(judge.grade([ask("<think>Nineteen, I"), ask("")]))
    assert [(verdict.label, verdict.posterior) for verdict in verdicts] == [("Wrong", None)] * 2
    assert verdicts[0].message != verdicts[1].message
    half = JudgeRequest(task="truthful-pair", question="How many?", responses=("19", "<think>hm"))
    ruling = get_task("truthful-pair").rule(half)
    assert ruling and ruling.status == "not_judgeable"


def test_both_responses_of_a_pair_lose_their_thoughts() -> None:
    thinking = [f"<think>x</think>{answer}" for answer in ("19", "20")]
    pairs = [
        JudgeRequest(task="truthful-pair", question="How many?", responses=(first, second))
        for first, second in (thinking, ("19", "20"))
    ]
    task = get_task("truthful-pair")
    assert task.item(pairs[0]) == task.item(pairs[1])
    assert task.item(task.swap(pairs[0])) == task.item(task.swap(pairs[1]))
