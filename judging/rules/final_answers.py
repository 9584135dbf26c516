"""Final answers: what a response settles on at its end, after however much reasoning."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from judging.rules.answer_options import has_doubt, leaves_number_open
from judging.rules.quantities import parse_unit

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
    r"[\s*_#>]{0,12}(?:(?:so|thus|hence|therefore|based on (?:the|this|that)(?: [a-z]{1,15}){1,2})"
    r"\b,?[ \t]{0,3})?(?:(?:the|my)[ \t]{1,3})?"
    r"|[\s*_#>]{0,12}(?:所以|因此|故|综上|根据(?:以上|上述)?(?:分析|推理|计算))?[，,]?",
    re.IGNORECASE,
)
"""What may stand before a label in its sentence; "He denied it: Answer: 3" announces nothing."""
_REST = r"[^.!?。！？\d\n]"
_COURTESY = re.compile(
    r"(?:\A|(?<=[.!?。！？\n$*_)}\]])|\s(?=i hope))\s{0,9}(?:"
    r"i hope (?:it|this|that|(?:my|the|this) (?:final )?(?:answer|solution))"
    r" (?:is (?:correct|right|helpful)|helps(?: you)?)"
    r"|hope (?:it|this|that) helps(?: you)?"
    rf"|(?:please )?(?:let me know if|feel free to ask) {_REST}{{1,90}}"
    rf"|if you (?:have|need) (?:any |more |further |other |additional ){{1,3}}[a-z]{_REST}{{1,90}}"
    rf"|(?:thank you|thanks)(?: (?:for|so|very) {_REST}{{1,60}})?|have a (?:nice|good|great) day"
    r"|q\.?e\.?d"
    rf"|希望(?:(?![不没错]){_REST}){{1,30}}(?:帮助|正确|有用|帮到[你您])"
    rf"|(?:如果|若|如)[你您]?(?:还|仍)?(?:有|需要)[^是为\d。！？\n]{{0,20}}(?:问题|疑问|帮助){_REST}{{0,30}}"
    rf"|(?:谢谢|感谢)(?:(?![是为]){_REST}){{0,20}}|祝[你您]{_REST}{{1,20}}|[解证]毕"
    r")[^\w$\\()\[\]{}<>=+/-]{0,9}\Z",
    re.IGNORECASE,
)
"""What closes a response and says nothing of its answer."""
_MOST_COURTESIES = 4
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
_OPERATOR = re.compile(r"(?:[-+/≠^~|%!)}\]\d\\]|\\[A-Za-z]+|(?<![A-Za-z])[A-Za-z]|负|倍的?)\Z")
_SENTENCE_MARKS = tuple(".!?:;。！？：；")
_ITEM = re.compile(r"\s*(?:(?:[-+•*]|\d{1,3}[.)])\s|#\d)")
"""A dash and a space may begin an item or a negative number, and "#2" names a place in a list."""
_UNIT = re.compile(
    r"(?:[ $)]|\\[)\],;: ]){0,6}"
    r"(?:\\(?:text|mathrm)\s?\{\s*([a-z]{1,15})\s*\}|([a-z]{1,15}|\\?%))(?![\w^{])"
)
"""A unit behind a box."""
_STEP = re.compile(r"\A\W{0,9}step \d{1,2}[:：]", re.IGNORECASE)
"""The beginning of a heading such as "Step 4: State the final answer"."""
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s?\{([^{}]*)\}")
_LONGEST_BOX = _LONGEST_LINE = 1000
"""Characters of a box or line that are read."""
_MOST_LABELS = 50
"""Labels that are read, from the end of a response."""
_LONGEST_SENTENCE = 200
"""Characters of a sentence that are read before its answer."""


class _Box(NamedTuple):
    """A box in a text, with the unit behind it."""

    start: int
    end: int
    content: str


def final_answers(response: str) -> tuple[str, ...]:
    r"""Return the texts that a response, without its thoughts, gives as its final answer.

    That is the content of its ``\boxed{}`` and what it announces behind it; else what follows its
    ``Answer:``, ``The answer is`` or ``答案是``; else its last line. What it names before and takes
    back does not count. Several texts, the last one last, may still be one answer: ``B. Perth`` and
    ``B``.

    Returns:
        Nothing where this is not certain: a doubt in the sentence itself, or more text behind it.
    """
    text = _without_courtesies(response)
    boxes, labels = _boxes(text), _labels(text)
    end = boxes[-1].end if boxes else 0
    later = [label for label in labels if label[0] > end]
    if not boxes:
        answers = _announced_answers(text, labels) if labels else _last_line(text)
    elif not later:
        answers = _boxed_answers(text, boxes)
    elif has_doubt(text[end : min(later[-1][0], end + _LONGEST_SENTENCE)]):  # about the box
        answers = _announced_answers(text, labels)
    else:
        start = later[0][0] - len(_sentence_before(text, later[0][0]))
        boxed, announced = _boxed_answers(text[:start], boxes), _announced_answers(text, later)
        answers = [*boxed, *announced] if boxed and announced else []
    plain = [wrapped[1] if (wrapped := _WRAPPED.fullmatch(text)) else text for text in answers]
    by_letters = {"".join(text.split()): text for text in plain}
    return tuple(by_letters.values()) if "" not in by_letters else ()


def _without_courtesies(response: str) -> str:
    text = response.strip()
    for _ in range(_MOST_COURTESIES):
        if not (closing := _COURTESY.search(text, max(0, len(text) - _LONGEST_SENTENCE))):
            break
        text = text[: closing.start()].rstrip()
    return text


def _labels(text: str) -> list[tuple[int, int]]:
    """Return where labels begin and end; those in a row are one: "Final answer: the answer is"."""
    labels: list[tuple[int, int]] = []
    for label in list(_LABEL.finditer(text))[-_MOST_LABELS:]:
        start = label.start()
        if labels and _LEAD.fullmatch(text, labels[-1][1], start):
            start = labels.pop()[0]
        labels.append((start, label.end()))
    return labels


def _boxed_answers(text: str, boxes: Sequence[_Box]) -> Sequence[str]:
    last = boxes[-1]
    is_last = not text[last.end :].strip(_AFTER_BOX)
    sentence = _sentence_before(text, last.start)
    head = _OPENING.sub("", sentence)
    # Before a box ``-``, ``2``, ``x <`` and "minus" change its value.
    is_joined = _OPERATOR.search(head) or leaves_number_open(head.rpartition(" ")[2])
    is_stated = not has_doubt(sentence) and not is_joined
    return [box.content for box in boxes] if is_last and is_stated else ()


def _announced_answers(text: str, labels: Sequence[tuple[int, int]]) -> Sequence[str]:
    before = [_sentence_before(text, start) for start, _ in labels]
    stated = [
        label for label, lead in zip(labels, before, strict=True) if _LEAD.fullmatch(lead)
    ]  # fmt: skip
    contents = [_content(text, end) for _, end in stated]
    is_quoted = any(re.search("[:：]", _STEP.sub("", lead)) for lead in before)
    is_last = "\n" not in text[labels[-1][1] :].removesuffix("</answer>").strip(_AROUND)
    is_stated = labels[-1] in stated and is_last and not is_quoted
    return contents if is_stated and not any(map(_ITEM.match, contents)) else ()


def _last_line(text: str) -> Sequence[str]:
    """Return a last line that stands alone: the only one, or one after a sentence and a blank line.

    Others may be the last item of a list.
    """
    before, _, line = text.rpartition("\n")
    is_alone = not before or (before[-1:] in "\n\r" and before.rstrip().endswith(_SENTENCE_MARKS))
    lead = before.rstrip()
    introduction = _sentence_before(lead, len(lead) - 1) if lead.endswith((":", "：")) else ""
    is_stated = not lead.endswith(("?", "？")) and not has_doubt(introduction)
    answer = line.lstrip(_BEFORE).rstrip(_AROUND)
    return [answer] if is_alone and is_stated and not _ITEM.match(line) else ()


def _content(text: str, start: int) -> str:
    """Return the line that a label announces, or the one below it."""
    line = text[start : start + _LONGEST_LINE].lstrip(_BEFORE).partition("\n")[0]
    return line.removesuffix("</answer>").rstrip(_AROUND)


def _sentence_before(text: str, position: int) -> str:
    """Return the beginning of the sentence that goes on at a position."""
    return _SENTENCE_END.split(text[max(0, position - _LONGEST_SENTENCE) : position])[-1]


def _boxes(text: str) -> list[_Box]:
    r"""Return every ``\boxed{}`` that is closed, outermost ones alone."""
    boxes: list[_Box] = []
    opened: list[re.Match[str]] = []
    for brace in _BRACE.finditer(text):
        if brace[0].endswith("{") and brace[0] != r"\{":
            opened.append(brace)
        elif brace[0] == "}" and opened:
            opening = opened.pop()
            if opening[0] != "{":
                while boxes and boxes[-1].start > opening.start():
                    boxes.pop()
                content = text[opening.end() : min(brace.start(), opening.end() + _LONGEST_BOX)]
                unit = _UNIT.match(text, brace.end())
                if unit and ((word := unit[1] or unit[2]).endswith("%") or parse_unit(word).unit):
                    boxes.append(_Box(opening.start(), unit.end(), f"{content.strip()} {word}"))
                else:
                    boxes.append(_Box(opening.start(), brace.end(), content.strip()))
    return boxes
