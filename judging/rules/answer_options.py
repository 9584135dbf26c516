"""Options that questions list, letters that texts name, and doubts that leave a rule undecided."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from judging.types import JudgeRequest

_NEGATIONS = (
    "not no never neither nor none without cannot cant dont wrong incorrect false untrue mistaken "
    "unlikely hardly barely scarcely fail fails failed doubt doubts doubtful opposite ignore "
    "ignoring refuse avoid exclude excludes excluded excluding eliminate eliminates eliminated "
    "eliminating reject rejects rejected dismiss disagree refute "
    "refutes refuted deny denies denied disprove disproved discard discarded retract retracted"
)
_HEDGES = (
    "may might could maybe perhaps possibly unless if unsure unclear unknown idea clue whether or "
    "either both guess"
)
_APPEARANCES = (
    "seem seems seemed appear appears appeared look looks looked mislead misleading misleads "
    "misled trick tricks trap decoy distractor kidding joke glance careless naive people reader "
    "readers someone others think thinks thought would initially originally supposedly claims says "
    "suggests"
)
_TURNS = (
    "actually however although though but wait sorry oops correction rather instead except swap "
    "swapped reverse reversed tie ties tied equal same"
)
_DOUBT = re.compile(
    rf"\b(?:{'|'.join(f'{_NEGATIONS} {_HEDGES} {_APPEARANCES} {_TURNS}'.split())})\b"
    r"|n['’]t\b|\b(?:rul(?:e|es|ed|ing)\s+out|far\s+from|other\s+than|less\s+of|too\s+\w+)\b"
    r"|\?|~~|不|没|[并绝]非|错|也许|或许|大概",
    re.IGNORECASE,
)

_BOUNDS = "over under above below between most least minimum maximum exceed exceeds than beyond"
_CHANGES = (
    "negative minus loss lost decrease decreased decreases decline declined drop dropped fell fall "
    "down increase increased increases rose rise up gain gained grew growth climbed jumped surged "
    "soared shrank reduced reduction cut discount improvement plus"
)
_COMPARATIVES = (
    "more less fewer higher lower greater larger smaller bigger taller shorter longer heavier "
    "lighter faster slower older younger wider stronger weaker better worse cheaper extra "
    "additional another ahead behind difference surplus beat beats outsold"
)
"""A difference, not the number itself: "20% more"."""
_MULTIPLES = (
    "double twice triple quadruple times third thirds quarter quarters fourth fifth dozen dozens "
    "score couple pair pairs gross lakh crore hundreds thousands per square cubic sq squared cubed "
    "root log each apiece ago bc bce"
)
_OPEN_NUMBER = re.compile(
    rf"\b(?:{'|'.join(f'{_BOUNDS} {_CHANGES} {_COMPARATIVES} {_MULTIPLES}'.split())})\b"
    r"|\band\s+a\b|±|√|\+/-|[<>≤≥多少高低增减]",
    re.IGNORECASE,
)


def has_doubt(text: str) -> bool:
    """Tell whether a text denies, hedges, corrects itself or reports what others see."""
    return _DOUBT.search(text) is not None


def leaves_number_open(text: str) -> bool:
    """Tell whether a text bounds, multiplies or gives a direction to the number in it."""
    return _OPEN_NUMBER.search(text) is not None


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
_LETTER_IN_TEXT = re.compile(r"(?<![\w.'’])(?:[B-Z]|A(?! (?!and|or)[a-z]))(?![\w.'’])")
_LETTER_RUN = re.compile(r"[^\W\d_]+")
_SHORT = 3
"""Letters of a word whose capitals may say what it is: mW and MW, Mb and mb, CO and Co."""
_NUMBER_AND_MARK = re.compile(r"[-+\d.,]*\d\s?['\"!]+")
"""Five feet, five inches and a factorial differ by what else may stand around a text."""


def option_named(text: str, choices: Sequence[str]) -> int | None:
    """Find the index of the option that a text names without saying anything else.

    ``B``, ``(b)``, ``The answer is B.``, ``Perth``, ``B. Perth`` and ``Perth (B)`` all name the
    second option of ``("Sydney", "Perth")``. Return ``None`` for any other text, for a letter
    beside another option's text, where a letter or a number may also mean another option, and where
    two options read alike.
    """
    if not choices:
        return None
    plain, texts = spelled(text), _all_spelled(tuple(choices))
    announced = None if plain in texts else _ANNOUNCEMENT.match(plain)
    numbered = _NUMBERED.fullmatch(plain) if announced else None
    if announced and announced.end() < len(plain):
        plain = plain[announced.end() :].strip(_AROUND)
    named = {index for index, choice in enumerate(texts) if choice == plain != ""}
    alone = _LETTER.fullmatch(plain)
    if match := alone or _LETTER_AND_TEXT.fullmatch(plain):
        index = ord(match[1].upper()) - ord("A")
        if index < len(choices) and (alone or spelled(match[2]) == texts[index]):
            named.add(index)
            named |= {other for other, choice in enumerate(texts) if choice == texts[index] != ""}
    if (match := _TEXT_AND_LETTER.fullmatch(plain)) and not named:
        index, before = ord(match[2].upper()) - ord("A"), spelled(match[1])
        named |= {other for other, choice in enumerate(texts) if choice == before}
        named = {index} if named == {index} else set()
    if alone:
        letter, pairs = _letter(plain), zip(texts, choices, strict=True)
        named |= {index for index, pair in enumerate(pairs) if letter in map(_letter, pair)}
    if named and numbered:
        named.add(int(numbered[1]) - 1)
    return named.pop() if len(named) == 1 else None


def options_of(request: JudgeRequest) -> tuple[str, ...]:
    """Find the options of a request: its ``choices``, or those with letters in the question.

    Options in a question are found if they are lettered in one way, from A on without a gap. The
    last one ends with its line.
    """
    return request.choices or _listed_in(request.question)


_CLASSES = re.compile(
    r"(?:^(?:labels|classes|categories|标签|类别)[:：]|\b(?:answer|reply|respond) with one of:?)"
    r"\s?([^\n.。?!:：;()]{3,300})[.。]?$",
    re.IGNORECASE | re.MULTILINE,
)
"""A closed list of answers without letters."""
_BETWEEN_CLASSES = re.compile(r"\s?[,，、]\s?(?:(?:and|or)\s)?|\s(?:and|or)\s|或")


def classes_of(question: str) -> frozenset[str]:
    """Find the classes that a question lists as the only answers: ``Labels: spam, ham``."""
    listed = _CLASSES.findall(question[-_LONGEST:])
    names = _BETWEEN_CLASSES.split(listed[0].strip()) if len(listed) == 1 else ()
    return frozenset(map(spelled, names)) - {""}


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
    """Spell the letter of an option: ``B`` of the second, ``AA`` of the 27th."""
    return ("" if index < 26 else letter_of(index // 26 - 1)) + chr(ord("A") + index % 26)


def lettered(index: int, text: str) -> str:
    """Return an option as judges see it: ``(B) Perth``."""
    return f"({letter_of(index)}) {text}"


def with_letter(reference: str, choices: Sequence[str]) -> str:
    """Return a reference with letter and text if it names one of the options by either."""
    index = option_named(reference, choices)
    return reference if index is None else lettered(index, choices[index])


def _letter(text: str) -> str | None:
    """Find the letter that a text is, begins with or holds alone: b of "(B) Perth", "Team B"."""
    match = _LETTER.fullmatch(text) or _LETTER_AND_TEXT.fullmatch(text)
    letters = [match[1]] if match else _LETTER_IN_TEXT.findall(text)
    return letters[0].lower() if len(letters) == 1 else None


def spelled(text: str) -> str:
    """Return a text in lower case without what stands around it: quotes, stars, a full stop.

    Short words keep their case where it may have a meaning: units and symbols.
    """
    folded = _LETTER_RUN.sub(_folded, " ".join(unicodedata.normalize("NFC", text).split()))
    if _NUMBER_AND_MARK.fullmatch(folded):
        return folded
    return folded.strip(_AROUND).rstrip(".!").strip(_AROUND)


@lru_cache(maxsize=16)  # asked for each reference of a request
def _all_spelled(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(spelled, texts))


def _folded(word: re.Match[str]) -> str:
    before = word.string[max(0, word.start() - 2) : word.start()].rstrip()
    is_symbol = before[-1:].isdigit() or word[0][1:] != word[0][1:].lower()
    return word[0] if is_symbol and len(word[0]) <= _SHORT else word[0].casefold()


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
    r"|rul(?:e|es|ed|ing)\s+out|(?:eliminat|exclud|reject)\w{0,3})|n['’ ]t\b|不是?|非|排除|别|勿)"
    r"(?:\s+(?:think|believe))?(?:\s+that)?(?:\s+(?:it|the\s+answer)\s+is)?"
    r"(?:\s+(?:option|choose|pick|select|be|the))?[\s(*\"']{0,4}\Z",
    re.IGNORECASE,
)
_DENIAL_CHARS = 100
"""Most characters of a denial in single spaces, with an article behind it."""
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

_WORD = re.compile(r"-?[0-9]+(?:[.,-][0-9]+)*|[^\W_]+")
_CONFIDENCE = re.compile(
    r"\[\s?(?:confidence\s?[:=]?\s?)?(\d{1,3}(?:\.\d{1,17})?|\.\d{1,17})\s?(%?)\s?\]", re.IGNORECASE
)


def published_option(response: str) -> str | None:
    r"""Find the letter that TruthfulVQA's published code extracts, or ``None``.

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
    r"""Find the option (``A`` to ``D``) that a free-text answer settles on, or ``None``.

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
    """Find the option that an answer settles on and leaves no doubt about, or ``None``.

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
    """Find the option by its letter as :func:`extract_option` does, and the letter's index."""
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
    """Find the options whose words occur outside of longer options, and are not denied."""
    named = []
    for index, words in sorted(enumerate(options), key=lambda pair: -len(pair[1])):
        if not words.strip() or words not in text:
            continue
        start = text.index(words)
        before, after = text[max(0, start - _DENIAL_CHARS) : start], start + len(words)
        before = before.removesuffix(" a").removesuffix(" the")
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
    """Find the last bracketed number in [0, 1], also one in full-width characters."""
    plain = (unicodedata.normalize("NFKC", character) for character in text)
    # Positions stay those of the text.
    narrow = "".join(new if len(new) == 1 else old for new, old in zip(plain, text, strict=True))
    matches = [match for match in _CONFIDENCE.finditer(narrow) if _confidence(match) <= 1]
    return matches[-1] if matches else None


def _confidence(match: re.Match[str]) -> float:
    return float(match[1]) / (100 if match[2] else 1)


def _answer(response: str) -> tuple[str, int]:
    """Tell what a response says outside of thoughts, and its index: an open one has no end."""
    answer = _THOUGHT_END.split(response)[-1]
    return _THOUGHT_BEGIN.split(answer)[0], len(response) - len(answer)


def _is_article(text: str, letter: re.Match[str]) -> bool:
    following = _NEXT_WORD.match(text, letter.end(1))
    if letter[1] != "A" or not following or following[1] in _NEVER_AFTER_AN_ARTICLE:
        return False
    before = text[max(0, letter.start() - 10) : letter.start()].rstrip().lower()
    return not before.endswith(("option", "choice"))
