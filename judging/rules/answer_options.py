"""Option letters and stated confidences in what a model wrote."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from judging.rules.doubts import has_doubt

_LETTERS = "ABCD"
_THOUGHT_END = re.compile(r"</think(?:ing)?>|◁/think▷")
_THOUGHT_BEGIN = re.compile(r"<think(?:ing)?>|◁think▷")
_PARENTHESES = re.compile(r"\([\s*]{0,4}([A-D])[\s*.]{0,4}\)")
_HALF_PARENTHESES = re.compile(r"(?<![A-Za-z0-9])([A-D])[*.]{0,3}\)")
_BOXED = re.compile(r"boxed\s?\{\s?(?:\\[a-z]{2,6}\s?\{\s?)?([A-Da-d])(?![A-Za-z])")
_BARE = re.compile(r"(?<![A-Za-z0-9])(?<![A-Z]\.)([A-D])(?![A-Za-z0-9]|\.[A-Z]\b)")
"""A letter on its own: not in a word, a number ("A4") or an abbreviation ("U.S.A.")."""
_LOWER_CASE_ALONE = re.compile(r"\W{0,8}([a-d])\W{0,8}")

_LABEL = r"[\s\"'*_(\[{]{0,6}([A-Da-d])(?![A-Za-z0-9'’])[)\]*.]{0,3}"
_ANNOUNCED = re.compile(
    r"(?:\banswer\b[ *\"']{0,3}(?:is|would be|should be|:|=|>)(?:\s+option)?"
    r"|\b(?:choose|pick|select|go with|opt for|settle on)\b(?:\s+option)?"
    rf"|答案(?:应该|应当)?[是为:]?|选择?|应选){_LABEL}",
    re.IGNORECASE,
)
_CALLED_RIGHT = re.compile(
    r"(?<![A-Za-z0-9])([A-D])[)\]*.]{0,3}\s{1,4}(?:is|must be|seems)\s{1,4}(?:the\s)?"
    r"(?:correct|right|best|true|answer)\b"
)
_CORRECTED = re.compile(
    r"(?:\b(?i:no|wait|sorry|correction|actually|i\smeant?)\b[,:.\s]{1,3}){1,3}"
    r"(?i:i\smeant?\s|it['’]s\s|it\sis\s|rather\s)?\(?([A-D])(?![A-Za-z0-9'’])"
)
_LAST = re.compile(r"(?:\(\s?|(?<![A-Za-z0-9]))([A-D])\)[\s.*!。]{0,6}(?:\[[\d.%\s]{1,8}\]\s?)?\Z")
_OWN_LINE = re.compile(r"^[ \t*(\[]{0,6}([A-D])[ \t*)\].]{0,6}$", re.MULTILINE)
_FIRST = re.compile(r"\s{0,9}[*_\"']{0,3}(?:\(\s?)?([A-Da-d])(?:[*_]{0,2}[.):,;][*_]{0,2}|\s-\s)")
_LISTED = re.compile(r"^[ \t*]{0,6}\(?[B-D][.)]", re.MULTILINE)
_OTHER_TOO = re.compile(
    r"[\s)*.]{0,4}(?:\bor\b|\band\b|[/&+,;]|或|和|、)[\s(*]{0,4}([A-D])(?![A-Za-z0-9'’])", re.I
)
_OTHER_BEFORE = re.compile(
    r"(?<![A-Za-z0-9])[A-D][\s)*]{0,4}(?:\bor\b|\band\b|/|&|或|和|、)[\s(*]{0,4}\Z"
)
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|no|over|unlike|than|of|except|neither|nor|anything\s+but|avoid|doubt"
    r"|(?:wrong|incorrect|worst)\s+(?:answer|option|choice)\s*(?:is|:)"
    r"|rul(?:e|es|ed|ing)\s+out|(?:eliminat|exclud|reject)\w{0,3})|n['’ ]t\b|不是?|非|排除)"
    r"(?:\s+(?:think|believe))?(?:\s+that)?(?:\s+(?:it|the\s+answer)\s+is)?"
    r"(?:\s+(?:option|choose|pick|select|be|the))?[\s(*\"']{0,4}\Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"[\s)*.\"']{0,4}(?:,\s?)?(?:(?:is|are|was|looks|seems|would\s+be|has\s+been|can\s+be)\s+"
    r"(?:not\b|wrong|incorrect|false|too\b|unlikely|excluded|eliminated|rejected|ruled\s+out)"
    r"|isn['’ ]t|does\s+not|doesn['’ ]t|cannot|can['’ ]t|不|错|是错)",
    re.IGNORECASE,
)

_NEXT_WORD = re.compile(r"[ \t]{1,4}([a-z]+)")
_NEVER_AFTER_AN_ARTICLE = frozenset(
    "is was are and or but because since as for with if than over instead not has does can would "
    "must should seems appears".split()
)

_DENIAL = re.compile(
    r"(?:\b(?:not|unlike|over|instead\s+of|rather\s+than)|不是?|非)\s{0,3}(?:option\s+)?\(?([A-D])\b\)?"
    r"|(?<![A-Za-z0-9])\(?([A-D])\b\)?\s+is\s+(?:not\s+(?:correct|right)|wrong|incorrect|false)\b"
)
"""A short denial of one option."""
_WEAKENED = re.compile(r"\b(?:least|worst|too|only)\b|[+#°&'’]|-\s*\Z|吗|错|排除", re.IGNORECASE)
_FILLERS = frozenset(
    "it is s its i say option choice the answer my final so therefore thus hence must be".split()
)
LONGEST_PLAIN = 60
"""Words of an answer that is read as plain; longer ones are reasoning."""

_WORD = re.compile(r"-?[0-9]+(?:[.,][0-9]+)*|[^\W_]+")
_CONFIDENCE = re.compile(
    r"\[\s?(?:confidence\s?[:=]?\s?)?(\d{1,3}(?:\.\d{1,17})?|\.\d{1,17})\s?(%?)\s?\]", re.IGNORECASE
)


def published_option(response: str) -> str | None:
    r"""Return the letter that TruthfulVQA's published code extracts, or ``None``.

    That is the last capital in ``(B)``; else the last in ``B)``; else in ``boxed{B}``; else, of all
    capitals anywhere, the last one, or the first if it alone is from A to D. Thoughts, words and
    denials are text like any other there.
    """
    for form in (r"\(([A-Z])\)", r"([A-Z])\)", r"boxed{([A-Za-z])}"):
        if letters := re.findall(form, response):
            return str(letters[-1]).upper()
    capitals = re.findall(r"[A-Z]", response)
    if not capitals:
        return None
    return str(
        capitals[0] if capitals[0] in "ABCD" and capitals[-1] not in "ABCD" else capitals[-1]
    )


def extract_option(response: str, options: Sequence[str] = ()) -> str | None:
    r"""Return the option (``A`` to ``D``) that a free-text answer settles on, or ``None``.

    What is announced counts (``Answer: B because A is wrong``, ``\boxed{B}``), or stands alone at
    the end or on its own line, the last of them; else the label that the answer begins
    with; else the only letter, or text of an option, that it does not deny. An answer that leaves
    several open names none. Thoughts do not count, nor does what follows a thought that is not
    closed.

    Args:
        response: What a model answered.
        options: Texts of the options in order, which an answer may name instead of a letter.
    """
    if option := find_option(response):
        return option[0]
    named = _named(_words(_answer(response)[0]), [_words(option) for option in options])
    return _LETTERS[named[0]] if len(named) == 1 else None


def plain_option(response: str, options: Sequence[str]) -> str | None:
    """Return the option that an answer settles on and leaves no doubt about, or ``None``.

    As :func:`extract_option`, but no other option may be named except to deny it shortly (``B, not
    A``), nothing may be doubted or corrected, and a letter that is only mentioned (``Plan B``) does
    not count. Of more options than have letters here none is plain.
    """
    option = extract_option(response, options)
    text = unicodedata.normalize("NFKC", _answer(response)[0])
    if option is None or len(options) > len(_LETTERS) or len(text.split()) > LONGEST_PLAIN:
        return None
    rest = _DENIAL.sub(lambda denial: " " if option not in denial.groups() else denial[0], text)
    named = {match[1] for match in _BARE.finditer(rest) if not _is_article(rest, match)}
    named |= {_LETTERS[index] for index in _named(_words(rest), list(map(_words, options)))}
    if named - {option} or has_doubt(rest) or _WEAKENED.search(rest):
        return None
    letter = _option_letter(text)
    is_mentioned = letter is not None and letter.re in (_PARENTHESES, _HALF_PARENTHESES, _BARE)
    words = set(_words(rest).split()) - {option.casefold()}
    may_be_article = letter is not None and letter[1] == "a" and len(text.split()) > 1
    return None if may_be_article or is_mentioned and not words <= _FILLERS else option


def find_option(response: str) -> tuple[str, int] | None:
    """Return the option by its letter as :func:`extract_option` does, and the letter's index."""
    answer, offset = _answer(response)
    characters = [unicodedata.normalize("NFKC", character) for character in answer]
    letter = _option_letter("".join(characters))
    if letter is None:
        return None
    ends = list(accumulate(map(len, characters)))
    return letter[1].upper(), offset + bisect_right(ends, letter.start(1))


def _option_letter(text: str) -> re.Match[str] | None:
    """Return the match whose first group is the letter of the option."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if alone := _LOWER_CASE_ALONE.fullmatch(text, start, end):
        return alone
    stated = [
        match
        for form in (_ANNOUNCED, _BOXED, _CALLED_RIGHT, _CORRECTED, _LAST, _OWN_LINE)
        for match in form.finditer(text)
        if not _is_lower_article(text, match)
        and (form is not _CORRECTED or not _is_article(text, match))
    ]
    settled = [match for match in stated if not _is_denied(text, match)]
    if settled:
        last = max(settled, key=lambda match: match.start(1))
        is_listing = all(match.re is _OWN_LINE for match in settled)
        is_several = is_listing and len({match[1] for match in settled}) > 1
        return None if is_several or _is_open(text, last) else last
    denied = {match.start(1) for match in stated}
    first = _FIRST.match(text)
    is_list = len(_LISTED.findall(text)) > 1
    if first and not is_list and not _is_denied(text, first):
        return None if _is_open(text, first) else first
    letters = [match for form in (_PARENTHESES, _HALF_PARENTHESES) for match in form.finditer(text)]
    letters = letters or [m for m in _BARE.finditer(text) if not _is_article(text, m)]
    left = [m for m in letters if m.start(1) not in denied and not _is_denied(text, m)]
    return left[-1] if len({match[1] for match in left}) == 1 else None


def _is_denied(text: str, letter: re.Match[str]) -> bool:
    before = (
        text[max(0, letter.start() - 30) : letter.start()],
        text[max(0, letter.start(1) - 30) : letter.start(1)],
    )
    return any(map(_DENIED_BEFORE.search, before)) or bool(_DENIED_AFTER.match(text, letter.end(1)))


def _is_open(text: str, letter: re.Match[str]) -> bool:
    """Tell whether another option is joined to one, ``A or B``, and not denied: ``B, A is no``."""
    start = letter.start(1)
    before = _OTHER_BEFORE.search(text[max(0, start - 16) : start])
    other = _OTHER_TOO.match(text, letter.end(1))
    return bool(before or other and not _DENIED_AFTER.match(text, other.end(1)))


def _is_lower_article(text: str, letter: re.Match[str]) -> bool:
    """Tell whether an announced letter may be the article: "the answer is a vase"."""
    following = _NEXT_WORD.match(text, letter.end(1))
    is_word = following and following[1] not in _NEVER_AFTER_AN_ARTICLE
    return letter[1] in "aA" and bool(is_word)


def _words(text: str) -> str:
    """Return the words of a text in lower case, in single spaces and with one on either side."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return f" {' '.join(_WORD.findall(plain))} "


def _named(text: str, options: Sequence[str]) -> list[int]:
    """Return the options whose words occur outside of longer options, and are not denied."""
    named = []
    for index, words in sorted(enumerate(options), key=lambda pair: -len(pair[1])):
        if not words.strip() or words not in text:
            continue
        start = text.index(words)
        before, after = text[:start].removesuffix(" a").removesuffix(" the"), start + len(words)
        if not (_DENIED_BEFORE.search(before) or _DENIED_AFTER.match(text, after)):
            named.append(index)
        text = text.replace(words, " | ")
    return named


def extract_confidence(response: str) -> float | None:
    """Return the confidence that an answer states as ``[0.9]`` or ``[90%]``, or ``None``.

    The last bracketed number in [0, 1] counts: ``[3]`` may be a citation, and ``[90]`` has no
    clear meaning.
    """
    stated = _stated_confidence(_answer(response)[0])
    return None if stated is None else _confidence(stated)


def without_confidence(response: str) -> str:
    """Return an answer without the confidence that it states, for ``5 [0.85]`` the bare ``5``.

    An answer that is nothing but a bracketed number is left as it is.
    """
    stated = _stated_confidence(response)
    if stated is None:
        return response
    rest = f"{response[: stated.start()]}{response[stated.end() :]}".strip()
    return rest or response


def _stated_confidence(text: str) -> re.Match[str] | None:
    """Return the last bracketed number in [0, 1], also one in full-width characters."""
    plain = (unicodedata.normalize("NFKC", character) for character in text)
    # Positions stay those of the text.
    narrow = "".join(new if len(new) == 1 else old for new, old in zip(plain, text, strict=True))
    matches = [match for match in _CONFIDENCE.finditer(narrow) if _confidence(match) <= 1]
    return matches[-1] if matches else None


def _confidence(match: re.Match[str]) -> float:
    return float(match[1]) / (100 if match[2] else 1)


def _answer(response: str) -> tuple[str, int]:
    """Return what a response says outside of thoughts, and its index: an open one has no end."""
    answer = _THOUGHT_END.split(response)[-1]
    return _THOUGHT_BEGIN.split(answer)[0], len(response) - len(answer)


def _is_article(text: str, letter: re.Match[str]) -> bool:
    following = _NEXT_WORD.match(text, letter.end(1))
    if letter[1] != "A" or not following or following[1] in _NEVER_AFTER_AN_ARTICLE:
        return False
    before = text[max(0, letter.start() - 10) : letter.start()].rstrip().lower()
    return not before.endswith(("option", "choice"))
