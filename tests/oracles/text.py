"""An independent reader of quick-score examples.

It derives the label of an example again from what a judge may see (question, choices, references,
reference mode, variant, response), without metadata and without any code of the generators. It
reads the plain ways of stating, correcting, rejecting and withholding an answer, in English and
Chinese. It checks constructed data; it is no judge of real responses.
"""

import os
import re

from judging.types import JudgeRequest
from tests.oracles.report import AuditResult


def audit_text(example: JudgeRequest) -> AuditResult:
    """Derive the label of one example from its text alone."""
    statement = _final_statement(example)
    claims = _elements(statement, example) if statement else []
    if not claims:
        return AuditResult("Wrong", "no final answer")
    hits = [_matching(claim, example) for claim in claims]
    strays = [claim for claim, hit in zip(claims, hits, strict=True) if not hit]
    if strays:
        return AuditResult("Wrong", f"{strays} outside {list(example.references)}")
    covered = set().union(*hits)
    missing = [ref for index, ref in enumerate(example.references) if index not in covered]
    if example.reference_mode == "all" and missing:
        return AuditResult("Partial", f"{missing} missing")
    return AuditResult("Correct", "equals the references")


# Statement that holds the final answer.

_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_UNFINISHED = re.compile(
    r"\b(?:the|a|an|is|are|was|and|or|with|if|for|that|whether|to|of|by|in|on|we|then|but|not|as)\s*$"
    r"|(?:[。，].*)(?:检查|是|重新|如果|因为|需要|以及|再|先|的)\s*$",
    re.S,
)
_LABEL = re.compile(
    r"\banswer\b\W*?(?:\bis\b\s*:?|[:=]|\*\*\s)|\bresult\s*[:=]|\brevised\s*:|答案(?:是|为|[:：])\s*",
    re.I,
)
_TURN = re.compile(
    r"\bactually\b|\bscratch that\b|\btake that back\b|\bcorrection\b|不对，|等等，|更正", re.I
)
_CONCLUSION = re.compile(r"^(?:so|therefore|thus|hence)\b|^(?:所以|因此|故)", re.I)
_PREAMBLE = re.compile(r"^(?:sure|certainly|of course|you are asking|good question)\b", re.I)


def _final_statement(example: JudgeRequest) -> str:
    """Return the last thing claimed, without what surrounds it; empty if nothing is claimed."""
    text = example.response.strip()
    boxed = _BOXED.findall(text)
    if boxed:
        return str(boxed[-1])
    if _UNFINISHED.search(text):
        return ""
    labels = list(_LABEL.finditer(text))
    if labels:
        labelled = text[labels[-1].end() :].strip().split("\n\n")[0]
        return _claim_part(_first(_sentences(labelled, example)), labelled=True)
    sentences = [part for part in _sentences(text, example) if not _PREAMBLE.match(part)]
    turns = [part for part in sentences if _TURN.search(part)]
    conclusions = [part for part in sentences if _CONCLUSION.match(part)]
    return _claim_part(_first([*turns[-1:], *conclusions[-1:], *sentences]), labelled=False)


def _first(parts: list[str]) -> str:
    return parts[0] if parts else ""


def _sentences(text: str, example: JudgeRequest) -> list[str]:
    """Cut text into sentences; a capital letter and a full stop may be an initial or an option."""
    cuts = [0]
    for stop in re.finditer(r"[.!?]+[\"”]?(?=\s+\S|\s*$)|[。！？]", text):
        before, after = text[: stop.start()], text[stop.end() :].lstrip()
        initial = re.search(r"(?:^|(?<!\d)[\s(*]|[\u3000-\uffef])([A-Z])$", before)
        if initial and after and stop.group() == "." and _continues(after, example):
            continue
        if re.search(r"(?:^|\n)\d+$", before) and after:
            continue
        cuts.append(stop.end())
    pieces = [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]
    return [piece.strip() for piece in pieces if piece.strip()]


def _continues(after: str, example: JudgeRequest) -> bool:
    """Return whether ``after`` belongs to the letter before it: an option's text, or a surname."""
    return not example.choices or after.startswith(example.choices)


_CLEFT = re.compile(r"^it (?:was|is) (.+?) who\b", re.I | re.S)
_NOT_BUT = re.compile(
    r"^(?:.*\bis not\b.*;|not\b.*?\bbut\b|(?:.*?不是|.*以为是).*?，(?:而是|其实是))\s*(.*)$",
    re.I | re.S,
)
_ASIDE = re.compile(
    r",? rather than\b.*"
    r"|, (?:not|as|though|although|but|with|some|which|who|where|since|because)\b.*"
    r"|，(?:而不是|但|这|不过|因为|其中).*|吧[。\s]*$",
    re.I | re.S,
)
_VERB = re.compile(
    r"(?:\b(?:is|are|was|were|be|holds|consists of|has)\b|'s\b|=|:(?=\s)|：|是|应为)\s*:?\s*"
)
_HEDGE = re.compile(r"^(?:actually|probably|perhaps|maybe|no)\b[\s,:]*|^either\b|^据我所知，", re.I)
_GUESSES = re.compile(r"^要么是(.+)，要么是(.+)$", re.S)


def _claim_part(sentence: str, *, labelled: bool) -> str:
    """Reduce a sentence to what it claims: its complement, without asides and rejected answers."""
    sentence = sentence.strip()
    cleft = _CLEFT.match(sentence)
    if cleft:
        return cleft.group(1)
    guesses = _GUESSES.match(sentence)
    if guesses:
        return "、".join(guesses.groups())
    contrast = _NOT_BUT.match(sentence)
    if contrast:
        sentence = contrast.group(1)
    sentence = _ASIDE.sub("", sentence)
    if not labelled:
        verbs = list(_VERB.finditer(sentence))
        if verbs:
            sentence = sentence[verbs[-1].end() :]
    return _HEDGE.sub("", sentence.strip())


# Elements of a claim.

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORTH = {word: value for value, word in enumerate(_ONES)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
_SPELLED = re.compile(
    rf"\b(?:{'|'.join(_WORTH)})\b(?:[ -](?:{'|'.join([*_WORTH, 'hundred'])})\b)*", re.I
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = r"(?P<month>[A-Z][a-z]{2})[a-z]*"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<day>\d{{1,2}}) {_MONTH} (?P<year>\d{{4}})",
        rf"{_MONTH} (?P<day>\d{{1,2}}), (?P<year>\d{{4}})",
        r"(?P<year>\d{4})[年/-](?P<month>\d{1,2})[月/-](?P<day>\d{1,2})日?",
    )
)
_SPLIT = re.compile(r"\s*(?:\n|;|；|、|，|,(?=\s)|\band\b|\bor\b|或者|以及)\s*(?![^()]*\d\))", re.I)
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+")


def _elements(statement: str, example: JudgeRequest) -> list[str]:
    """Split a claim into elements; dates become ISO, spelled English numbers become digits."""
    if example.reference_mode == "any":
        statement = _in_shape_of(example.question, statement)
    statement = _with_iso_dates(statement)
    lines = [_BULLET.sub("", line.strip()) for line in statement.strip(" *").split("\n")]
    statement = _SPELLED.sub(_figures, "\n".join(lines))
    if example.reference_mode == "any":
        guesses = re.split(r",?\s+or\s+(?:possibly\s+)?|、|或者", statement)
        statement = "\n".join(_main_mention(guess, example) for guess in guesses)
    parts = [part.strip(" \t\n*.。?？") for part in _SPLIT.split(statement)]
    return [part for part in parts if part]


def _in_shape_of(question: str, statement: str) -> str:
    """Drop the words a Chinese statement shares with its question at either end."""
    if not re.search(r"[\u4e00-\u9fff]", question):
        return statement
    question = re.sub(r"^谁", "", question.strip(" ？?"))
    bare = statement.strip(" 。")
    head = len(os.path.commonprefix([question, bare]))
    tail = len(os.path.commonprefix([question[::-1], bare[::-1]]))
    return bare[head : len(bare) - tail] if 2 <= head + tail < len(bare) else statement


_RUN = re.compile(r"\b[A-Z][\w'’-]*\.?(?:\s+(?:of\s+)?[A-Z][\w'’-]*\.?)*")
_NO_NAMES = frozenset("As I If It In".split())


def _main_mention(statement: str, example: JudgeRequest) -> str:
    """Pick the first entity of the reference's type in a clause that the question does not name.

    A bare entity is returned as it is.
    """
    reference = _with_iso_dates(example.references[0])
    if _number(reference) or reference[:4].isdigit():
        numbers = re.findall(r"\d+(?:[-,.]\d+)*", statement)
        return next((text for text in numbers if text not in example.question), statement)
    if not re.search(r"(?<!\S)(?!of\b)[a-z]+|,", statement):
        return statement
    names = [name for name in _RUN.findall(statement) if name not in _NO_NAMES]
    new = (name for name in names if name.removeprefix("The ") not in example.question)
    return next(new, statement)


def _with_iso_dates(text: str) -> str:
    for pattern in _DATES:
        text = pattern.sub(_iso, text)
    return text


def _iso(match: re.Match[str]) -> str:
    month = match["month"]
    number = int(month) if month.isdigit() else _month_number(month)
    return f"{match['year']}-{number:02}-{int(match['day']):02}"


def _month_number(name: str) -> int:
    return _MONTHS.index(name[:3].lower()) + 1 if name[:3].lower() in _MONTHS else 0


def _figures(match: re.Match[str]) -> str:
    total = 0
    for word in re.split(r"[ -]", match.group().lower()):
        total = total * 100 if word == "hundred" else total + _WORTH[word]
    return str(total)


# Comparison of an element with a reference.

_OPTION = re.compile(r"^(?:选项?)?\(?([A-H])\)?(?:[.):]?\s+(.+)|[.)]?)$", re.S)
_UNITS = {
    "km": ("kilometres", "公里"),
    "kg": ("kilograms", "千克"),
    "m": ("metres", "米"),
    "min": ("minutes", "分钟"),
    "L": ("litres", "升"),
    "nm": ("nanometres", "纳米"),
}
_UNIT_OF = {spelling: unit for unit, all_ in _UNITS.items() for spelling in (unit, *all_)}
_NUMBER = re.compile(r"^([-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e\d+)?)\s*(\D*)$")
_FRACTION = re.compile(r"^(\d+)/(\d+)$")
_ZH_NUMBER = re.compile(r"^(百分之)?([零一二三四五六七八九十百]+)(\D*)$")


def _matching(claim: str, example: JudgeRequest) -> set[int]:
    """Return the indices of the references that ``claim`` is equal to."""
    references = [_with_iso_dates(reference) for reference in example.references]
    return {index for index, reference in enumerate(references) if _same(claim, reference, example)}


def _same(claim: str, reference: str, example: JudgeRequest) -> bool:
    if example.choices:
        ours, theirs = _option(claim, example.choices), _option(reference, example.choices)
        return ours is not None and ours == theirs
    number, target = _number(claim), _number(reference)
    if target is not None:
        return number is not None and _equal(number, target, example.variant == "tolerance")
    if _plain(claim) == _plain(reference):
        return True
    asks_for_person = re.search(r"\bwho\b", example.question, re.I) is not None
    short, full = sorted((claim.split(), reference.split()), key=len)
    fuller = full == claim.split() and (len(short) < 2 or "." in reference)
    return asks_for_person and not fuller and _abbreviates(short, full)


def _option(text: str, choices: tuple[str, ...]) -> int | None:
    """Return the index of the option that a letter, an option's text, or both together name."""
    named = _OPTION.match(text)
    if named:
        index = ord(named.group(1)) - ord("A")
        if index < len(choices) and named.group(2) in (None, choices[index]):
            return index
    written = [index for index, choice in enumerate(choices) if _option_text(text, choice)]
    return written[0] if written else None


def _option_text(text: str, choice: str) -> bool:
    number, other = _number(text), _number(choice)
    return number == other if number and other else _plain(text) == _plain(choice)


def _number(text: str) -> tuple[float, str] | None:
    """Return value and unit of a number (``%`` is worked out); ``None`` for other text."""
    fraction = _FRACTION.match(text)
    if fraction:
        return int(fraction.group(1)) / int(fraction.group(2)), ""
    spelled = _ZH_NUMBER.match(text)
    if spelled:
        value = float(_zh_value(spelled.group(2)))
        return (value / 100, "") if spelled.group(1) else (value, spelled.group(3).strip())
    match = _NUMBER.match(text)
    if not match:
        return None
    value, unit = float(match.group(1).replace(",", "").replace("−", "-")), match.group(2).strip()
    return (value / 100, "") if unit in ("%", "percent") else (value, unit)


def _zh_value(numeral: str) -> int:
    total, digit = 0, 0
    for sign in numeral:
        if sign in "十百":
            total += (digit or 1) * (10 if sign == "十" else 100)
            digit = 0
        else:
            digit = "零一二三四五六七八九".index(sign)
    return total + digit


def _equal(number: tuple[float, str], target: tuple[float, str], tolerance: bool) -> bool:
    (value, unit), (right, right_unit) = number, target
    claimed, expected = _UNIT_OF.get(unit), _UNIT_OF.get(right_unit)
    if claimed and expected and claimed != expected:
        return False
    return abs(value - right) <= (0.05 if tolerance else 1e-9) * max(abs(right), 1e-9)


def _plain(text: str) -> str:
    """Return text without case, quotation marks, title marks, spaces and a leading article."""
    bare = re.sub(r"[\"“”《》\s]", "", re.sub(r"^[\"“]?the\s", "", text.strip(), flags=re.I))
    return bare.casefold()


def _abbreviates(short: list[str], full: list[str]) -> bool:
    """Return whether ``short`` is ``full`` with given names dropped or cut to initials."""
    if not short or len(full) < 2 or short[-1] != full[-1]:
        return False
    given = iter(full[:-1])
    return all(
        any(name == part or (part.endswith(".") and name.startswith(part[:-1])) for name in given)
        for part in short[:-1]
    )
