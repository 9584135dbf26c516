"""Reading answers in mathematics: LaTeX or plain text as values, sets, points, intervals, matrices.

What could take long (towers of powers, factorials, sums, deep nesting) is not read, and neither is
what authors and parsers read in more than one way.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, Literal

from judging.rules.whole_words import plain_numbers

LONGEST = 200
"""Characters of a text that is read."""
_LONGEST_NUMBER = 15
_DEEPEST = 6
_MOST_ITEMS = 30
_LARGEST_POWER = 1000
"""Bound on the product of all exponents: a power of a power is no larger than one of this."""

_FUNCTIONS = "ln|exp|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan"
_COMMANDS = (
    f"frac|sqrt|pi|cdot|times|div|infty|{_FUNCTIONS}|log|pm"
    "|alpha|beta|gamma|delta|theta|lambda|mu|phi|omega"
)
_EXPRESSION = re.compile(
    rf"(?:\\(?:{_COMMANDS})(?![A-Za-z])|[A-Za-z](?:_\{{?\w\}}?+)?|(?<=\\log)_"
    rf"|(?<![\d.])\d{{1,{_LONGEST_NUMBER}}}(?:\.\d{{1,{_LONGEST_NUMBER}}})?(?![\d.])"
    r"|[-+/^(){}\[\]| ])+"
)
"""No part may be read in two ways: with each, the time of a text that does not match doubles."""
_OPEN_TO_READING = re.compile(
    r"\d\s+\d|(?<![\d.])0\d|\d\s*[(\[]\s*-?[\d./]+\s*[)\]]|\)\s*\d|/\s*(?:\d+|[a-z]|\([^()]*\))\s*[A-Za-z\\(]|\\log(?!_)|[-+]{3}"
    r"|\^\s*(?:-|\\)|\}\s*\d|\d\s*\\frac\{[^{}]*[^\d{}][^{}]*\}|_\{?\d+\}?\d"
    r"|(?<![A-Za-z\\])[a-z]\s+\d|\^\{?\w+\}?\s*\^|\^(?:1|\{1\})\s*/|\\frac\s?\d{3}|\\sqrt\s?\d\d"
)
"""What authors and parsers read in more than one way: ``2(3)``, ``1/2x``, ``1 h 30``, ``log 2``."""
_FUNCTION = rf"\\(?:{_FUNCTIONS}|log_\{{?\w+\}}?)(?![A-Za-z])"
_OPEN_ARGUMENT = re.compile(
    rf"{_FUNCTION}(?:\^\{{?-?\d+\}}?)?+\s*+(?!\()(?!(?:\|[^|]*\||\{{[^{{}}]*\}}|\\sqrt\{{[^{{}}]*\}}"
    r"|\\frac\{[^{}]*\}\{[^{}]*\}|(?:\d+(?:\.\d+)?)?\s*(?:\\[a-z]+|[a-z])?(?:\^\{?\w+\}?)?)"
    rf"\s*(?:[-+)\]}}|]|{_FUNCTION}|\Z))"
)
"""A function of what has no brackets and goes on: ``ln 2 * 3`` and ``sin x / 2``."""
_OPEN_POWER = re.compile(r"[\de]\^-?\d+[a-z]")
"""In text without LaTeX: ``e^2x``."""
_POWER = re.compile(r"\^(?:\{([^{}^]{1,12})\}|\{\\frac\{(\d{1,2})\}\{(\d{1,2})\}\}|(\w)(?![\d.]))")
_PLAIN_WORD = re.compile(r"[A-Za-z]{2,}|[A-Z]|[a-z]\d|(?<![\d)}a-z])[a-z](?=\s*\()")
"""In text without LaTeX: words, names such as B12, and functions."""
_DATE_OR_SCORE = re.compile(
    r"\d+(?:\s?[-–:]\s?\d+)+|\d+/\d+/\d+|\d{4}/\d\d(?:\d\d)?|\d*0s|[\d\s()+-]{9,}"
)
"""What is no computation: 1914-1918, 3:1, the season 2018/19, the 1890s."""
_RANGE = re.compile(r"[\d.]+\s?-\s?[\d.]+")
_OF_AN_ACCOUNT = re.compile(r"\(\s*[\d.]+\s*\)")
_DECIMAL_COMMA = re.compile(r"[-$€£¥ ]{0,3}\d+,\d+\D*")

_LAYOUT = (
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|(?:display|text)style)(?![A-Za-z])\.?"), ""),
    (re.compile(r"(?<!\\)\\(?:[,;:! ]|q?quad(?![A-Za-z]))|~|\\mbox\{\s*\}"), " "),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:mathrm|textrm|mathbf|textbf|operatorname|mbox|textit)(?=\s?\{)"), r"\\text"),
    (re.compile(r"\\\\\s?\[[\d.]+(?:pt|ex|em|mm)\]"), r"\\\\"),
    (re.compile(r"\\(?:leq?|leqslant)(?![A-Za-z])|≤|⩽|<="), "≤"),
    (re.compile(r"\\(?:geq?|geqslant)(?![A-Za-z])|≥|⩾|>="), "≥"),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\in(?![A-Za-z])"), "∈"),
    (re.compile(r"\\cup(?![A-Za-z])"), "∪"),
    (re.compile(r"\\(?:lbrace|\{)"), "⟨"),
    (re.compile(r"\\(?:rbrace|\})"), "⟩"),
    (re.compile(r"\\text\{\s*(and|or|,)\s*\}"), r" \1 "),
    (re.compile(r"\\(?:lor|vee)(?![A-Za-z])|或者?"), " or "),
    (re.compile(r"\\(?:land|wedge)(?![A-Za-z])|和|且|、"), " and "),
    (re.compile(r"∞"), r"\\infty "),
    (re.compile(r"π"), r"\\pi "),
    (re.compile(r"×"), r"\\times "),
    (re.compile(r"[·⋅∙]"), r"\\cdot "),
    (re.compile(r"÷"), "/"),
    (re.compile(r"[−–]"), "-"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\*"), r"\\cdot "),
    (re.compile(r"±"), r"\\pm "),
    (re.compile(r"√\s?(\d+|[a-z])(?![\w(])"), r"\\sqrt{\1}"),
    (re.compile(r"(?:√|(?<![A-Za-z\\])sqrt)\s?\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![A-Za-z\\])(pi|sin|cos|tan|ln|exp)(?![A-Za-z])"), r"\\\1 "),
    (re.compile(r"(?<=\d)[eE]([+-]?\d{1,3})(?!\w)"), r" \\cdot 10^{\1}"),
    (re.compile(r"\^\s?(?:\\circ(?![A-Za-z])|\{\s?\\circ\s?\})|°"), r"\\text{deg}"),
    (re.compile(r"\{,\}"), ""),
    (re.compile(r"(?<![\d./])(\d+)\s+(\d+)/(\d+)(?![\d./])"), r"\1\\frac{\2}{\3}"),
    (re.compile(r"\\%"), "%"),
)  # fmt: skip
"""Spellings of one notation, in the order in which they are unified."""
_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile(r"(?<=[\w)\]}])[⁰¹²³⁴-⁹⁻]+")
_UNREAD = re.compile(r"\A[\s*]*~|\.\.|…|[⁰¹²³⁴-⁹]\s?√")
"""What is about a value, or goes on without being written, and roots that look like powers."""
_THOUSANDS = re.compile(r"(?<![\d.,(\[⟨])-?\d{1,3}(?:,\d{3})+(?![\d,])")
_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"))
_DECIMAL = re.compile(r"(\d+)\.(\d+)")
_UNIT = re.compile(
    r"(?P<value>.*[\d})])\s*(?:\\text\s?\{\s*(?P<text>[^{}\d]{1,30})\}(?P<power>\^\{?\d\}?)?"
    r"|(?P<word>[a-z]{2,15}(?:\s[a-z]{1,15}){0,2}|(?<=\d)\s?[mg]))\s*"
)
_MONEY = re.compile(r"(-?)\s?\\?([$€£¥])\s?(?=\d)")
_NAME = r"(?:[a-zA-Z](?:_\{?\w\}?)?|[fgh]\s?\([a-z]\))"
_JOINT = r"[,;]|\sand\s|\sor\s"
_AROUND = " \t\r\n.,;"
_OPENINGS, _CLOSINGS = "([{⟨", ")]}⟩"
_HALF_OPEN = (("(", "]"), ("[", ")"))
_MATRIX = re.compile(
    r"[\[(]?\s*\\begin\{([pbB]?matrix|array)\}(?:\{[clr| ]+\})?(.*)\\end\{\1\}\s*[\])]?", re.DOTALL
)

Kind = Literal["value", "infinity", "set", "list", "tuple", "matrix", "equation", "named"]


class UnreadError(ValueError):
    """A text that is no mathematics, or none that can be compared for certain."""


@dataclass(frozen=True)
class Answer:
    """What an answer is made of."""

    kind: Kind
    items: tuple[Any, ...]
    """Its parts: answers; of a value or an equation (left less right side) math-verify's tree."""
    marks: tuple[str, ...] = ()
    """Brackets of a tuple, names of a named answer, unit of a value, sign of an infinity."""
    is_exact: bool = False
    """A tuple that can only be an interval; a value that is a whole number in digits."""
    name: str = ""
    """Of what these are the values, if it is written: ``x`` in ``x > 1``."""

    @property
    def is_number(self) -> bool:
        """Tell whether it is a value without symbols."""
        return self.kind == "value" and not symbols(self.items[0])


@lru_cache(maxsize=1 << 12)
def read_answer(text: str) -> Answer:
    """Read a text that is mathematics as a whole; raise ``UnreadError`` for any other."""
    if len(text) > LONGEST:
        raise UnreadError("long")
    is_latex = "\\" in text or text.count("$") > 1
    return _Reader(is_latex).answer(_unified(text, is_latex=is_latex))


def notation(text: str) -> str:
    """Return a text that is mathematics in one notation, without spaces."""
    return "".join(_unified(text, is_latex="\\" in text or text.count("$") > 1).split())


def _unified(text: str, *, is_latex: bool) -> str:
    """Write a text in one notation, without what stands around it."""
    if _UNREAD.search(text):
        raise UnreadError("it goes on, or has a root of another degree")
    text = _SUPERSCRIPT.sub(lambda power: f"^{{{power[0].translate(_LOWERED)}}}", text)
    text = plain_numbers(text).strip(_AROUND)
    for opening, closing in _DELIMITERS * 2:
        inner = text[len(opening) : len(text) - len(closing)]
        if text == f"{opening}{inner}{closing}" and inner and opening not in inner:
            text = inner.strip(_AROUND)
    if _DATE_OR_SCORE.fullmatch(text):
        raise UnreadError("a date, a score or a telephone number")
    text = text.replace("$", " ") if text.count("$") > 1 else text
    if not is_latex:
        if _OPEN_POWER.search(text):
            raise UnreadError("a power that may end in two places")
        text = re.sub(r"\^\(([^()]*)\)|\^(-?\d+)", r"^{\1\2}", text)
    for spelling, notation in _LAYOUT:
        text = spelling.sub(notation, text)
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    has_content = r"[\d\\^]" if not is_latex else r"[\d\\^+/=<>≤≥-]"
    if not re.search(has_content, text) or _DECIMAL_COMMA.fullmatch(text):
        raise UnreadError("no mathematics, or a comma for a point")
    return text.strip(_AROUND)


class _Reader:
    """Reads a text in one notation."""

    def __init__(self, is_latex: bool) -> None:
        self._is_latex = is_latex

    def answer(self, text: str) -> Answer:
        """Read an answer or a part of one."""
        text = text.strip(_AROUND)
        if not text:
            raise UnreadError("an empty part")
        if len(parts := split_outside(text, _JOINT)) > 1:
            return self._list(parts, is_both=" and " in text and " or " not in text)
        if len(parts := split_outside(text, "∪")) > 1:
            return Answer("set", tuple(map(self.answer, parts)), ("∪",))
        if len(parts := split_outside(text, "∈")) == 2 and re.fullmatch(_NAME, parts[0].strip()):
            return replace(self.answer(parts[1]), name=parts[0].strip())
        if len(parts := split_outside(text, "=")) > 1:
            return self._equation(parts)
        if len(parts := split_outside(text, "[<>≤≥]")) > 1:
            return self._inequality(parts, re.findall("[<>≤≥]", text))
        if matrix := _MATRIX.fullmatch(text):
            rows = [row.split("&") for row in matrix[2].strip().removesuffix("\\\\").split("\\\\")]
            return Answer("matrix", tuple(tuple(map(self.answer, row)) for row in rows))
        if text[:1] in "([{⟨" and _closing(text) == len(text) - 1:
            return self._bracket(text)
        return self._signed(text)

    def _list(self, parts: Sequence[str], *, is_both: bool) -> Answer:
        items = tuple(map(self.answer, parts))
        if len(items) > _MOST_ITEMS:
            raise UnreadError("many parts")
        if all(item.kind == "named" and len(item.items) == 1 for item in items):
            by_name = {item.marks[0]: item.items[0] for item in items}
            names, letters = tuple(sorted(by_name)), {name[0] for name in by_name}
            if len(letters) == len(items):
                return Answer("named", tuple(by_name[name] for name in names), names)
            if len(letters) > 1:
                raise UnreadError("several values of several names")
            if len(by_name) == len(items):  # roots in any order, or members of a sequence
                values = tuple(by_name[name] for name in names)
                return Answer("list", values, name=names[0][0])
            return Answer("set", tuple(item.items[0] for item in items), name=names[0])
        if any(item.is_exact and item.kind == "tuple" for item in items):
            return _intersection(items, is_both=is_both)
        if any(item.kind in ("named", "equation", "set", "list") for item in items):
            raise UnreadError("a list of several kinds")
        return Answer("list", items)

    def _equation(self, parts: Sequence[str]) -> Answer:
        first, last = parts[0].strip(), parts[-1].strip()
        if len(parts) == 2 and re.fullmatch(_NAME, last) and not re.fullmatch(_NAME, first):
            first, last = last, first
        if re.fullmatch(_NAME, first):
            value = self.answer(last)
            is_value = value.kind == "value"
            return Answer("named", (value,), (first,)) if is_value else replace(value, name=first)
        if names := re.fullmatch(r"\(((?:[a-z],\s*)+[a-z])\)", first):
            value, listed = self.answer(last), [name.strip() for name in names[1].split(",")]
            if value.kind == "tuple" and len(value.items) == len(listed):
                by_name = dict(zip(listed, value.items, strict=True))
                return Answer(
                    "named",
                    tuple(by_name[name] for name in sorted(by_name)),
                    tuple(sorted(by_name)),
                )
        sides = [self._signed(part) for part in (first, last)]
        if any(side.kind != "value" or side.marks[0] for side in sides):
            raise UnreadError("an equation of other things than values")
        if not any(symbols(side.items[0]) for side in sides):
            return sides[1]
        if len(parts) > 2:
            raise UnreadError("a chain of equations")
        return Answer("equation", (sides[0].items[0] - sides[1].items[0],))

    def _inequality(self, parts: Sequence[str], signs: Sequence[str]) -> Answer:
        """Read ``1 < x <= 2`` or ``x > 1`` as the interval of ``x``."""
        parts, signs = [part.strip() for part in parts], list(signs)
        if all(sign in ">≥" for sign in signs):
            parts, signs = parts[::-1], [{">": "<", "≥": "≤"}[sign] for sign in signs[::-1]]
        named = [index for index, part in enumerate(parts) if re.fullmatch(_NAME, part)]
        if len(named) != 1 or any(sign in ">≥" for sign in signs) or len(parts) > 3:
            raise UnreadError("an inequality that is not solved")
        [at] = named
        if len(parts) == 3 and at != 1:
            raise UnreadError("an inequality that is not solved")
        low = self.answer(parts[at - 1]) if at > 0 else Answer("infinity", (), ("-",))
        high = self.answer(parts[at + 1]) if at + 1 < len(parts) else Answer("infinity", (), ("",))
        opening = "[" if at > 0 and signs[at - 1] == "≤" else "("
        closing = "]" if at < len(signs) and signs[at] == "≤" else ")"
        return Answer("tuple", (low, high), (opening, closing), is_exact=True, name=parts[at])

    def _bracket(self, text: str) -> Answer:
        opening, closing, inner = text[0], text[-1], text[1:-1]
        items = tuple(map(self.answer, split_outside(inner, "[,;]"))) if inner.strip() else ()
        if opening in "{⟨" or not items:
            return Answer("set", items)
        if len(items) == 1:
            return items[0] if opening == "(" and items[0].kind != "value" else self._signed(text)
        if opening == "[" and all(item.kind == "tuple" and item.marks[0] == "[" for item in items):
            return Answer("matrix", tuple(item.items for item in items))
        is_infinite = any(item.kind == "infinity" for item in items)
        is_interval = len(items) == 2 and (is_infinite or (opening, closing) in _HALF_OPEN)
        return Answer("tuple", items, (opening, closing), is_exact=is_interval)

    def _signed(self, text: str) -> Answer:
        r"""Read a value, an infinity, or two values with ``\pm``."""
        text = text.strip(_AROUND)
        if infinity := re.fullmatch(r"([+-]?)\s*\\infty", text):
            return Answer("infinity", (), (infinity[1].strip("+"),))
        if text.count("\\pm") == 1:
            return Answer("set", tuple(self._value(text.replace("\\pm", sign)) for sign in "+-"))
        return self._value(text)

    def _value(self, text: str) -> Answer:
        text, unit = _without_unit(text.strip().removeprefix("+").strip())
        if unit and _RANGE.fullmatch(text):
            raise UnreadError("a range, or a difference")
        if _OF_AN_ACCOUNT.fullmatch(text):
            raise UnreadError("a number in brackets, which accountants take for a negative one")
        words = re.sub(r"\\[A-Za-z]+", " ", text)
        if not self._is_latex and _PLAIN_WORD.search(words):
            raise UnreadError("words")
        is_open = _OPEN_TO_READING.search(text) or _OPEN_ARGUMENT.search(text)
        if is_open or not _EXPRESSION.fullmatch(text):
            raise UnreadError("no expression with one meaning")
        _check_size(text)
        digits = re.fullmatch(r"-?\d+", text)
        return Answer("value", (_tree(text),), (unit,), is_exact=digits is not None)


def _intersection(items: Sequence[Answer], *, is_both: bool) -> Answer:
    """Return the interval of ``x > 1 and x < 2``."""
    is_one = is_both and len({item.name for item in items}) == 1
    if len(items) != 2 or not is_one or not all(item.is_exact for item in items):
        raise UnreadError("several inequalities")
    low = [item for item in items if item.items[1].kind == "infinity"]
    high = [item for item in items if item.items[0].kind == "infinity"]
    if len(low) != 1 or len(high) != 1:
        raise UnreadError("two bounds on one side")
    ends = (low[0].items[0], high[0].items[1])
    marks = low[0].marks[0], high[0].marks[1]
    return Answer("tuple", ends, marks, is_exact=True, name=low[0].name)


def split_outside(text: str, separator: str) -> list[str]:
    """Split a text at a pattern outside of all brackets."""
    parts, start, depth = [], 0, 0
    for match in re.finditer(rf"[(\[{{⟨]|[)\]}}⟩]|{separator}", text):
        if match[0] in _OPENINGS:
            depth += 1
        elif match[0] in _CLOSINGS:
            depth -= 1
        elif depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _closing(text: str) -> int:
    """Find where the bracket closes that a text begins with; -1 if nowhere."""
    depth = 0
    for position, mark in enumerate(text):
        depth += (mark in _OPENINGS) - (mark in _CLOSINGS)
        if depth == 0:
            return position
    return -1


def _without_unit(text: str) -> tuple[str, str]:
    """Return a value and its unit, which may be empty."""
    if money := _MONEY.match(text):
        value, counted = _without_unit(text[money.end() :])
        return money[1] + value, f"{counted} {money[2]}".strip()
    if text.endswith("%"):
        return text[:-1].strip(), "%"
    if unit := _UNIT.fullmatch(text):
        return unit["value"], " ".join(
            filter(None, (unit["text"], unit["word"], unit["power"]))
        ).strip()
    return text, ""


def _check_size(text: str) -> None:
    depth = deepest = 0
    for mark in text:
        depth += (mark in _OPENINGS) - (mark in _CLOSINGS)
        deepest = max(deepest, depth)
    powers = [power.group(*range(1, 5)) for power in _POWER.finditer(text)]
    sizes = [
        max(map(int, re.findall(r"\d+", "".join(filter(None, power)))), default=1)
        for power in powers
    ]
    if (
        depth
        or deepest > _DEEPEST
        or text.count("|") > _DEEPEST
        or len(powers) != text.count("^")
        or prod(max(1, size) for size in sizes) > _LARGEST_POWER
    ):
        raise UnreadError("large")


def _tree(text: str) -> Any:
    """Return math-verify's tree of an expression."""
    import logging

    from math_verify import LatexExtractionConfig, parse
    from sympy import Expr

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns that it sets no alarm
    exact = _DECIMAL.sub(lambda n: rf"\frac{{{n[1]}{n[2]}}}{{1{'0' * len(n[2])}}}", text)
    # Its own cleaning drops what may be a unit: the h of \pi r^2 h, the t of 5t.
    cleaning = replace(LatexExtractionConfig().normalization_config, units=False)
    trees = parse(
        f"${exact}$",
        extraction_config=[LatexExtractionConfig(normalization_config=cleaning)],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    if len(trees) != 1 or not isinstance(trees[0], Expr):
        raise UnreadError("math-verify does not read it")
    return trees[0]


def symbols(tree: Any) -> list[str]:
    """List the names of a tree's symbols, in alphabetical order."""
    return sorted(symbol.name for symbol in tree.free_symbols)
