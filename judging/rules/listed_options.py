"""Options that a question lists: which of them a text names, and how references name them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from judging.types import JudgeRequest

_ANNOUNCEMENT = re.compile(
    r"(?:the |my )?(?:final |correct |right |best )?(?:answer|option|choice)\b\s*(?:is\b|:|=)?\s*"
    r"(?:option\s+)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r".*\b(?:option|choice)\s*#?(\d{1,3})", re.IGNORECASE)
"""Names an option by its place, or by its text: "Option 2"."""
_LETTER = re.compile(r"[(\[]?\s*([A-Za-z])\s*[)\].:]?")
_LETTER_AND_TEXT = re.compile(r"[(\[]?([A-Za-z])(?:[)\].:]+|\s+-)\s+(\S.*)", re.DOTALL)
_TEXT_AND_LETTER = re.compile(r"(\S.*\S|\S)\s{0,3}[(\[]([A-Za-z])[)\]]", re.DOTALL)
_MARKS = tuple(
    re.compile(rf"(?<![^\s,;|/(\[])(?:{mark})(?=\s?\S)", re.MULTILINE)
    for mark in (
        r"\(([A-Z])\)", r"\(([a-z])\)", r"\[([A-Z])\]", r"([A-Z])\)", r"([a-z])\)",
        r"([A-Z])\.(?=\s)", r"([a-z])\.(?=\s)", r"(?:Option\s)?([A-Z])\s?[:=/](?=\s)",
    )
)  # fmt: skip
"""Ways to letter the options in a question."""
_FIRST_MARK = re.compile(r"[Aa]\s?[).:\]=/]")
_LONGEST = 20_000
"""Characters of a question that is looked through for options."""
_BETWEEN = " \t\n,;|/-*"
_AROUND = " \t\r\n*_`\"'“”‘’"
_LETTERS = re.compile(r"[^\W\d_]+")
_SHORT = 3
"""Letters of a word whose capitals may say what it is: mW and MW, Mb and mb, CO and Co."""
_NUMBER_AND_MARK = re.compile(r"[-+\d.,]*\d\s?['\"!]+")
"""Five feet, five inches and a factorial differ by what else may stand around a text."""


def option_named(text: str, choices: Sequence[str]) -> int | None:
    """Return the index of the option that a text names without saying anything else.

    ``B``, ``(b)``, ``The answer is B.``, ``Perth``, ``B. Perth`` and ``Perth (B)`` all name the
    second option of ``("Sydney", "Perth")``. Return ``None`` for any other text, for a letter
    beside another option's text, where a letter or a number may also mean another option, and where
    two options read alike.
    """
    plain, texts = _spelled(text), [_spelled(choice) for choice in choices]
    announced = None if plain in texts else _ANNOUNCEMENT.match(plain)
    numbered = _NUMBERED.fullmatch(plain) if announced else None
    if announced and announced.end() < len(plain):
        plain = plain[announced.end() :].strip(_AROUND)
    named = {index for index, choice in enumerate(texts) if choice == plain != ""}
    alone = _LETTER.fullmatch(plain)
    if match := alone or _LETTER_AND_TEXT.fullmatch(plain):
        index = ord(match[1].upper()) - ord("A")
        is_listed = index < len(choices)
        if is_listed and (alone or _spelled(match[2]) == texts[index]):
            named.add(index)
            named |= {other for other, choice in enumerate(texts) if choice == texts[index] != ""}
    if (match := _TEXT_AND_LETTER.fullmatch(plain)) and not named:
        index = ord(match[2].upper()) - ord("A")
        named |= {other for other, choice in enumerate(texts) if choice == _spelled(match[1])}
        named = {index} if named == {index} else set()
    if alone:
        named |= {index for index, choice in enumerate(texts) if _letter(choice) == _letter(plain)}
    if named and numbered:
        named.add(int(numbered[1]) - 1)
    return named.pop() if len(named) == 1 else None


def options_of(request: JudgeRequest) -> tuple[str, ...]:
    """Return the options of a request: its ``choices``, or those with letters in the question.

    Options in a question are found if they are lettered in one way, from A on without a gap. The
    last one ends with its line.
    """
    return request.choices or _listed_in(request.question)


@lru_cache(maxsize=256)  # asked when a request is measured, ruled and shown
def _listed_in(question: str) -> tuple[str, ...]:
    if len(question) > _LONGEST or not _FIRST_MARK.search(question):
        return ()
    listed = max((_lettered_in(question, mark) for mark in _MARKS), key=len)
    return listed if len(listed) > 1 else ()


def _lettered_in(question: str, mark: re.Pattern[str]) -> tuple[str, ...]:
    letters = list(mark.finditer(question))
    marks: list[re.Match[str]] = []
    for match in letters:
        if match[1].upper() == letter_of(len(marks)):
            marks.append(match)
    if len({match[1] for match in letters}) < len(letters):
        return ()  # One of them belongs to a text: "A. Louis B. Mayer B. ..."
    ends = [*(match.start() for match in marks), len(question)][1:]
    texts = [question[match.end() : end] for match, end in zip(marks, ends, strict=False)]
    if texts:
        texts[-1] = texts[-1].strip().partition("\n")[0]
        if "?" in texts[-1] and "?" not in "".join(texts[:-1]):
            return ()  # "A: 5 points, B: 7 points. Who won?" lists what the question is about.
    return tuple(text.strip(_BETWEEN) for text in texts)


def letter_of(index: int) -> str:
    """Return the letter of an option: ``B`` of the second, ``AA`` of the 27th."""
    return ("" if index < 26 else letter_of(index // 26 - 1)) + chr(ord("A") + index % 26)


def lettered(index: int, text: str) -> str:
    """Return an option as judges see it: ``(B) Perth``."""
    return f"({letter_of(index)}) {text}"


def with_letter(reference: str, choices: Sequence[str]) -> str:
    """Return a reference with letter and text if it names one of the options by either."""
    index = option_named(reference, choices)
    return reference if index is None else lettered(index, choices[index])


def _letter(text: str) -> str | None:
    """Return the letter that a text is or begins with, as ``b`` in ``(B) Perth``."""
    match = _LETTER.fullmatch(text) or _LETTER_AND_TEXT.fullmatch(text)
    return match[1].lower() if match else None


def _spelled(text: str) -> str:
    """Return a text in lower case without what stands around it: quotes, stars, a full stop.

    Short words keep their case where it may have a meaning: units and symbols.
    """
    folded = _LETTERS.sub(_folded, " ".join(unicodedata.normalize("NFC", text).split()))
    if _NUMBER_AND_MARK.fullmatch(folded):
        return folded
    return folded.strip(_AROUND).rstrip(".!").strip(_AROUND)


def _folded(word: re.Match[str]) -> str:
    before = word.string[max(0, word.start() - 2) : word.start()].rstrip()
    is_symbol = before[-1:].isdigit() or word[0][1:] != word[0][1:].lower()
    return word[0] if is_symbol and len(word[0]) <= _SHORT else word[0].casefold()
