"""Final answers: what a response settles on at its end, after however much reasoning."""

from __future__ import annotations

import re
from collections.abc import Sequence

from judging.rules.answer_options import has_doubt, leaves_number_open

_BRACE = re.compile(r"\\f?boxed\s{0,3}\{|\\.|[{}]", re.DOTALL)
_LABEL = re.compile(
    r"<answer>|【(?:最终)?答案】|^####(?=\s)"
    r"|\b(?:(?:final|correct)[ \t]{1,3})?answer"
    r"(?:[ \t]{0,3}[:：]|[*_]{0,3}[ \t]{1,3}(?:is|would be)\b[:：]?|[*_]{1,3}[:：]"
    r"|[*_ \t]{0,4}(?=\n))"
    r"|\b(?:final[ \t]{1,3})?result[*_]{0,3}[ \t]{0,3}[:：]"
    r"|(?:最终|最后的?)?结果(?:[是为]|[*_]{0,3}[:：])"
    r"|(?:最终|最后的?|正确)?答案(?:应该?)?(?:[是为:：]{1,2}|[*_]{1,3}[:：]|[*_ \t]{0,4}(?=\n))",
    re.IGNORECASE | re.MULTILINE,
)
"""What announces a final answer; at the end of a line, the answer is in the lines below."""
_LEAD = re.compile(
    r"[\s*_#>]{0,12}(?:(?:so|thus|hence|therefore)\b,?[ \t]{0,3})?(?:(?:the|my)[ \t]{1,3})?"
    r"|[\s*_#>]{0,12}(?:所以|因此|故|综上)?[，,]?",
    re.IGNORECASE,
)
"""What may stand before a label in its sentence; "He denied it: Answer: 3" announces nothing."""
_HOPE = re.compile(r"\.?\s{0,3}I hope it is correct\.?\s{0,3}\Z")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\n。！？]")
_BEFORE = " \t\r\n*_`#。：:"
_AROUND = f"{_BEFORE}."
"""What may stand around an answer; before it a point is part of it: ``.5``."""
_AFTER_BOX = " \t\r\n$*_`.。])\\"
"""What may follow a box and is no more answer: the ends of formulas, stars, a full stop."""
_OPENING = re.compile(
    r"(?:[\s$*_`(\[{&]|\\[\[(,;:! ]"
    r"|\\(?:q?quad|therefore|implies|Rightarrow|displaystyle)(?![A-Za-z]))+\Z"
)
"""What may stand right before a box without a meaning of its own."""
_OPERATOR = re.compile(r"(?:[-+/≠^~|%!)}\]\d\\]|\\[A-Za-z]+|(?<![A-Za-z])[A-Za-z])\Z")
_SENTENCE_MARKS = tuple(".!?:;。！？：；")
_ITEM = re.compile(r"\s*(?:[-+•*]|\d{1,3}[.)])\s")
"""A dash and a space may begin an item or a negative number."""
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s?\{([^{}]*)\}")
_LONGEST_BOX = _LONGEST_LINE = 1000
"""Characters of a box or line that are read."""
_MOST_LABELS = 50
"""Labels that are read, from the end of a response."""
_LONGEST_SENTENCE = 200
"""Characters of a sentence that are read before its answer."""


def final_answer(response: str) -> str | None:
    r"""Return the text that a response, without its thoughts, gives as its final answer.

    That is the content of its ``\boxed{}``; else what follows its last ``Answer:``, ``The answer
    is`` or ``答案是``; else its last line. What it names before and takes back does not count.

    Returns:
        ``None`` where this is not certain: two different boxes or announced lines, a doubt in the
        sentence itself, or more text behind it.
    """
    text = _HOPE.sub("", response.strip())
    boxes, labels = _boxes(text), list(_LABEL.finditer(text))[-_MOST_LABELS:]
    is_taken_back = False
    if boxes and labels:  # a doubt about the box, and an answer announced after it
        end, label = boxes[-1][1], labels[-1].start()
        is_taken_back = end < label and has_doubt(text[end : min(label, end + _LONGEST_SENTENCE)])
    if boxes and not is_taken_back:
        answer = _boxed_answer(text, boxes)
    elif labels:
        answer = _announced_answer(text, labels)
    else:
        answer = _last_line(text)
    wrapped = _WRAPPED.fullmatch(answer or "")
    return (wrapped[1] if wrapped else answer) or None


def _boxed_answer(text: str, boxes: Sequence[tuple[int, int, str]]) -> str | None:
    start, end, content = boxes[-1]
    is_last = not text[end:].strip(_AFTER_BOX)
    sentence = _sentence_before(text, start)
    head = _OPENING.sub("", sentence)
    # Before a box ``-``, ``2``, ``x <`` and "minus" change its value.
    is_joined = _OPERATOR.search(head) or leaves_number_open(head.rpartition(" ")[2])
    is_stated = not has_doubt(sentence) and not is_joined
    contents = [content for _, _, content in boxes]
    return content.strip() if is_last and is_stated and _are_one(contents) else None


def _announced_answer(text: str, labels: Sequence[re.Match[str]]) -> str | None:
    last, stated = labels[-1], [
        label for label in labels if _LEAD.fullmatch(_sentence_before(text, label.start()))
    ]  # fmt: skip
    contents = [_content(text, label.end()) for label in stated]
    is_quoted = any(re.search("[:：]", _sentence_before(text, label.start())) for label in labels)
    is_last = "\n" not in text[last.end() :].removesuffix("</answer>").strip(_AROUND)
    return (
        contents[-1] or None
        if last in stated
        and is_last
        and not is_quoted
        and _are_one(contents)
        and not _ITEM.match(contents[-1])
        else None
    )


def _last_line(text: str) -> str | None:
    """Return a last line that stands alone: the only one, or one after a sentence and a blank line.

    Others may be the last item of a list.
    """
    before, _, line = text.rpartition("\n")
    is_alone = not before or (before[-1:] in "\n\r" and before.rstrip().endswith(_SENTENCE_MARKS))
    lead = before.rstrip()
    introduction = _sentence_before(lead, len(lead) - 1) if lead.endswith((":", "：")) else ""
    is_stated = not lead.endswith(("?", "？")) and not has_doubt(introduction)
    answer = line.lstrip(_BEFORE).rstrip(_AROUND)
    return answer if is_alone and is_stated and not _ITEM.match(line) else None


def _content(text: str, start: int) -> str:
    """Return the line that a label announces, or the one below it."""
    line = text[start : start + _LONGEST_LINE].lstrip(_BEFORE).partition("\n")[0]
    return line.removesuffix("</answer>").rstrip(_AROUND)


def _are_one(contents: Sequence[str]) -> bool:
    return len({"".join(content.split()) for content in contents}) == 1


def _sentence_before(text: str, position: int) -> str:
    """Return the beginning of the sentence that goes on at a position."""
    return _SENTENCE_END.split(text[max(0, position - _LONGEST_SENTENCE) : position])[-1]


def _boxes(text: str) -> list[tuple[int, int, str]]:
    r"""Return start, end and content of every ``\boxed{}`` that is closed, outermost ones alone."""
    boxes: list[tuple[int, int, str]] = []
    opened: list[re.Match[str]] = []
    for brace in _BRACE.finditer(text):
        if brace[0].endswith("{") and brace[0] != r"\{":
            opened.append(brace)
        elif brace[0] == "}" and opened:
            opening = opened.pop()
            if opening[0] != "{":
                while boxes and boxes[-1][0] > opening.start():
                    boxes.pop()
                content = text[opening.end() : brace.start()]
                boxes.append((opening.start(), brace.end(), content[:_LONGEST_BOX]))
    return boxes
