"""References in answers: as whole words and whole numbers, whatever the case and punctuation."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps

_ARTICLE = re.compile(r"\b(?:an?|the)\b(?=\s+[^\w\s]*\w)", re.IGNORECASE)
"""An article stands before a word: "Vitamin A" has none."""
_LETTER_A = re.compile(r"(?<=\w )A\b(?! [A-Z])")
"""A capital within a sentence is a name, as in "Group A won"."""

_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d]|,\d)")
_SUPERSCRIPT = re.compile(r"(?<=\d)(?=⁻?[⁰¹²³⁴-⁹])")
_VULGAR_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_DIGIT = re.compile(r"\d")
_BARE_POINT = re.compile(r"(?<![\w.])\.(?=\d)")
_SIGN_IN_WORDS = re.compile(
    r"\b(?:minus|negative)\s+(?=\.?\d)|(?:负|負|零下)\s*(?=\d)", re.IGNORECASE
)

_NO_BORDERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts that write words without spaces between them, or join particles to them."""
_NUMBER_SIGN = re.compile(
    r"(?<=\d)\.(?=\d)|(?<![\w.])\.(?=\d)"  # 3.5 is not 35, and .5 not 5
    rf"|(?:(?<=[{_NO_BORDERS}])|(?<![\w)\]]))-(?=\.?\d)"  # -2 is not 2, in 1-2 is no sign
    r"|(?<=\d)\^(?=-?\d)"  # 10^2 is not 102
)
_FRACTION = re.compile(r"(?<![\d/.])\d+(/)\d+(?![\d/])")
_UNIT = re.compile(rf"(?<![^\W\d])(\d)(?=[^\W\d_{_NO_BORDERS}])(?!(?:st|nd|rd|th|s|d)\b|e\d)")
"""The last digit of a number with its unit right behind it: "5km", not "5th" nor "1e5"."""

_FOOTNOTE = re.compile(r"(?<=[^\W\d_]{3})(?=\d)")
"""Between a word and the mark of its source: "Vermeer1"."""
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
_APOSTROPHE = re.compile("['’]")

_WITHOUT_BORDERS = re.compile(f"[{_NO_BORDERS}]")
_NUMERALS = frozenset("〇零一二两兩三四五六七八九十百千万萬亿億")
ONES = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_MAGNITUDES = "hundred thousand million billion trillion"
_ENDS_IN_NUMBER = re.compile(rf"(?:\d|\b(?:{'|'.join(f'{ONES} {TENS}'.split())}))$")
_BEGINS_WITH_ONES = re.compile(rf"(?:{'|'.join(ONES.split())})\b")
_LARGER_BEFORE = re.compile(rf"\b(?:{'|'.join(f'{TENS} {_MAGNITUDES}'.split())})\s$")
_GOES_ON = re.compile(
    rf"\s?(?:{'|'.join(_MAGNITUDES.split())})\b|[百万萬亿億]|千(?![米克瓦])"
    rf"|(?<=ty)\s(?:{'|'.join(ONES.split())})\b"
)


def plain_numbers(text: str) -> str:
    """Unify compatibility forms of a text: ``５`` is 5, but ``10²`` is 10^2 and ``1½`` is 1 1/2.

    So are the digits of all scripts, and ``.5`` is 0.5.
    """
    text = _VULGAR_FRACTION.sub(" ", _SUPERSCRIPT.sub("^", text))
    text = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-")
    text = text.replace("\N{FRACTION SLASH}", "/")
    if not text.isascii():
        text = _DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), text)
    return _BARE_POINT.sub("0.", text)


_SHORT = 1_000
"""Most characters of a text that is kept beside many others, or looked for at every place."""
_LONGEST_NUMBER_WORD = len("seventeen")


def _remembering(read: Callable[[str], str]) -> Callable[[str], str]:
    """Have a function remember what it made of many short texts, and of the last long ones."""
    short, long = lru_cache(maxsize=1 << 16)(read), lru_cache(maxsize=16)(read)
    return wraps(read)(lambda text: (short if len(text) <= _SHORT else long)(text))


@_remembering
def normalise(text: str) -> str:
    """Remove case, punctuation, English articles and extra white space, as SQuAD does.

    This works for every script: compatibility forms are unified, and Unicode punctuation and
    symbols are removed. Numbers stay themselves: their points, minus signs, fractions and powers
    stay, and other punctuation between digits becomes a space. A step that would remove the whole
    text is skipped: ``A`` may be an option letter, ``%`` may be the answer.
    """
    return _without_punctuation(text, "")


def holds(text: str, reference: str) -> bool:
    """Tell whether a text holds a reference as whole words and whole numbers, both normalised.

    ``2012`` and ``-12`` do not hold ``12``, nor ``Indian`` ``Ian``. Scripts without borders
    between words, such as Chinese, are searched for the bare characters, but their numbers are
    whole as well: ``十三`` does not hold ``三``. A reference without any text occurs nowhere.
    """
    return any(
        _occurs(reshape(text), wanted)
        for reshape in (normalise, _spaced)
        if (wanted := reshape(reference))
    )


@_remembering
def _spaced(text: str) -> str:
    """Normalise a text, with spaces for punctuation, and where digits meet units and words."""
    text = _without_punctuation(_APOSTROPHE.sub("", _POSSESSIVE.sub(" ", text)), " ")
    return _FOOTNOTE.sub(" ", _UNIT.sub(r"\1 ", text))


def _without_punctuation(text: str, between: str) -> str:
    """Normalise a text; punctuation between words becomes ``between``."""
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), plain_numbers(text))
    text = _SIGN_IN_WORDS.sub("-", text)
    names = {match.start() for match in _LETTER_A.finditer(text)}
    without_articles = _ARTICLE.sub(
        lambda match: match[0] if match.start() in names else " ", text
    ).casefold()
    text = without_articles if without_articles.strip() else text.casefold()
    kept = {match.start() for match in _NUMBER_SIGN.finditer(text)}
    kept |= {match.start(1) for match in _FRACTION.finditer(text)}
    characters = [
        character
        if position in kept or unicodedata.category(character)[0] not in "PS"
        else (" " if _is_between_digits(text, position) else between)
        for position, character in enumerate(text)
    ]
    without_punctuation = "".join(characters)
    text = without_punctuation if without_punctuation.strip() else text
    return " ".join(text.split())


def _is_between_digits(text: str, position: int) -> bool:
    around = text[max(0, position - 1) : position], text[position + 1 : position + 2]
    return all(map(str.isdigit, around))


def _occurs(text: str, reference: str) -> bool:
    """Tell whether a normalised text holds a reference that is not part of more around it."""
    is_number = _NUMERALS.issuperset(reference)
    ends_in_number = _ENDS_IN_NUMBER.search(reference, len(reference) - _LONGEST_NUMBER_WORD - 1)
    for start in _starts(text, reference):
        end = start + len(reference)
        goes_on = (is_number and text[end : end + 1] in _NUMERALS) or (
            ends_in_number and _GOES_ON.match(text, end)
        )
        if not goes_on and not _is_part(text, reference, start, end):
            return True
    return False


def _starts(text: str, reference: str) -> Iterator[int]:
    """Yield where a reference stands in a text, of a long one only places that do not overlap.

    One that repeats itself may stand at every place, and would be read again at each.
    """
    step = 1 if len(reference) <= _SHORT else len(reference)
    start = text.find(reference)
    while start >= 0:
        yield start
        start = text.find(reference, start + step)


def _is_part(text: str, reference: str, start: int, end: int) -> bool:
    """Tell whether an occurrence is part of a longer word or number."""
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if before in tuple("-.^/") or after in tuple(".^/"):
        return True
    if _are_one_word(before, reference[0]) or _are_one_word(reference[-1], after):
        return True
    if before in _NUMERALS and reference[0] in _NUMERALS:
        return True
    return bool(
        _BEGINS_WITH_ONES.match(reference)
        and _LARGER_BEFORE.search(text[max(0, start - 12) : start])
    )


def _are_one_word(first: str, second: str) -> bool:
    """Tell whether two neighbouring characters belong to one word of a script with borders."""
    return all(
        character.isalnum() and not _WITHOUT_BORDERS.match(character)
        for character in (first or " ", second or " ")
    )
