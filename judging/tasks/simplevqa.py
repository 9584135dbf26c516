"""SimpleVQA: a short factual answer is correct, incorrect or not attempted."""

import json
import re

from judging.rules.whole_words import holds, normalise
from judging.tasks.base import Field, JudgeTask, judge_task
from judging.types import JudgeRequest

CORRECT, INCORRECT, NOT_ATTEMPTED = "Correct", "Incorrect", "Not attempted"
CONCLUSIONS = (CORRECT, INCORRECT, NOT_ATTEMPTED)
CHINESE = {CORRECT: "正确", INCORRECT: "错误", NOT_ATTEMPTED: "未尝试"}

_SPELLINGS = {
    spelling.casefold(): conclusion
    for letter, conclusion in zip("ABC", CONCLUSIONS, strict=True)
    for spelling in (letter, conclusion, conclusion.replace(" ", "_"), CHINESE[conclusion])
}

_NO_ATTEMPT = re.compile(
    r"\b(?:do not|don['’]t|cannot|can['’]t|unable|not (?:sure|certain|possible)|unclear|unknown"
    r"|sorry|no (?:idea|clue|answer|information|way (?:of|to))|more (?:context|information))\b"
    r"|不(?:知道|确定|清楚)|无法|抱歉|看不出",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[a-z]*")
_LETTER_AND_WORD = re.compile(
    r"(?:- )?[\[(*]*([ABC])[\])*]*\s*[:：.)、-]\s*(.+)", re.IGNORECASE | re.DOTALL
)

_ENGLISH = f"""\
You grade a short answer to a factual question about a picture, which you do not see.
{CORRECT}: it holds all the important information of the reference and contradicts none of it. \
Case, punctuation, order, language and hedging do not matter.
{INCORRECT}: it states something that contradicts the reference, even if hedged. So does a bare \
list that leaves out an element, adds a wrong one, or offers several alternative guesses.
{NOT_ATTEMPTED}: it lacks important information and contradicts nothing: it says that it does not \
know, asks for more context, or knows one part and says that the rest is unknown.
Numbers: right if equal to the reference cut or rounded to as many decimals as the answer gives. \
For 3518.17: 3518, 3518.1 and 3518.17 are right, 3520 and 3600 are wrong, and "about 3500" or \
"over 3000" is no attempt.
Only what the question asks for is needed, even if the reference says more. What is obvious from \
the question may be left out. Another translation of the same person's name is right.
Answer with one of: {CORRECT}, {INCORRECT}, {NOT_ATTEMPTED}."""

_CHINESE = f"""\
你负责评判对一道图片事实题的简短作答，你看不到图片。
{CORRECT}：作答包含参考答案的全部重要信息，且与之没有任何矛盾。大小写、标点、顺序、所用语言以及语气是否肯定均不影响。
{INCORRECT}：作答含有与参考答案相矛盾的内容，语气保留也不例外。只列出部分要素而不加说明、多出错误要素、\
给出几个备选猜测，都属此类。
{NOT_ATTEMPTED}：作答缺少重要信息，但没有任何矛盾：表示不知道、要求补充背景，或只知道一部分并说明其余未知。
数字：与参考答案按作答的小数位数截断或四舍五入后相等即为正确。以 3518.17 为例：\
3518、3518.1、3518.17 正确；3520、3600 错误；“大约3500”“超过3000”视为未尝试。
只需回答题目所问，参考答案可以更详细。从题目可以明显看出的内容可以省略。同一人名的不同译法视为正确。
只回答以下之一：{CORRECT}, {INCORRECT}, {NOT_ATTEMPTED}。"""


def parse_conclusion(text: str) -> str | None:
    """Read the conclusion that a text consists of: a letter, an English or a Chinese word."""
    return _SPELLINGS.get(" ".join(text.split()).strip(" *.。!\"'`()[]【】「」“”").casefold())


def parse_official(text: str) -> str | None:
    """Find the conclusion in a reply to a published prompt, as its reader finds it.

    The official code asks for ``{"预测答案0": "正确"}`` and takes the first value, also without the
    last brace; the paper's prompt asks for a letter, which models write as ``A: Correct`` too. The
    parts of a list must agree.
    """
    text = _FENCE.sub("", text).strip()
    for written in (text, text + "}"):
        try:
            return _only_conclusion(json.loads(written))
        except (ValueError, RecursionError):
            continue
    return _only_conclusion([text])


def _only_conclusion(reply: object) -> str | None:
    """Return the one conclusion in an object, a list or a text; ``None`` if there is not just one.

    An object within one may hold the reasoning beside the ``conclusion``, as the official code's
    earlier prompt asked for it.
    """
    if isinstance(reply, dict):
        return _only_conclusion(reply.get("conclusion", next(iter(reply.values()), None)))
    if isinstance(reply, list):
        found = {_only_conclusion(part) for part in reply}
        return found.pop() if len(found) == 1 else None
    if not isinstance(reply, str):
        return None
    named = _LETTER_AND_WORD.fullmatch(reply.strip())
    parts = named.groups() if named else (reply,)
    found = {parse_conclusion(part) for part in parts}
    return found.pop() if len(found) == 1 else None


@judge_task
class SimpleVQA(JudgeTask):
    """Factual correctness of a short answer, which may also be no attempt, from the text alone.

    SimpleVQA (paper section 3.3), judged in English or Chinese as the variant says. The labels are
    the same in both variants, so that verdicts can be counted together.
    """

    name = "simplevqa"
    example = {
        "variant": "english",
        "question": "Who painted this picture?",
        "references": ["Johannes Vermeer"],
        "response": "It was painted by Jan Vermeer.",
    }
    variants = ("english", "chinese")
    required = ("question", "references")
    label_set = CONCLUSIONS
    empty_label = NOT_ATTEMPTED
    reads_pictures = False
    has_rules = True

    def label_by_rule(self, request: JudgeRequest) -> str:
        """Find the conclusion of rules: ours, the paper has none.

        They see whether a reference occurs in the answer, as whole words and whole numbers, and
        know phrases of people who do not know. A reference within such a phrase does not count:
        ``No`` in ``No idea``. They read no denial, no other name and no rounded number.
        """
        if ruling := self.rule(request):
            return ruling.label or NOT_ATTEMPTED
        response = request.response
        claimed = _NO_ATTEMPT.sub(" | ", response)
        for reference in request.references:
            text = response if _NO_ATTEMPT.search(reference) else claimed
            if holds(text, reference) or normalise(reference) == normalise(response) != "":
                return CORRECT
        return NOT_ATTEMPTED if _NO_ATTEMPT.search(response) else INCORRECT

    def worth(self, rubric: str) -> dict[str, float]:
        """Return 1 for a correct answer and 0 for any other: no attempt is no half."""
        return {CORRECT: 1.0, INCORRECT: 0.0, NOT_ATTEMPTED: 0.0}

    def instruction(self, rubric: str) -> str:
        """List all criteria, in the language of the variant."""
        return _CHINESE if rubric == "chinese" else _ENGLISH

    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return question, reference and response."""
        headings = ("Question", "Reference", "Response")
        if request.variant == "chinese":
            headings = ("题目", "参考答案", "作答")
        return (
            Field(headings[0], request.question),
            Field(headings[1], " / ".join(request.references)),
            Field(headings[2], request.response, is_response=True),
        )

    def parse(self, text: str, rubric: str) -> str | None:
        """Find the conclusion of a reply, also in a form that a published prompt asks for."""
        return parse_official(text)
