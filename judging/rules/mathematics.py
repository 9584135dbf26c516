r"""Answers in mathematics: whether two texts, in LaTeX or plain, give the same value.

math-verify reads the expressions. They are compared as numbers, at fixed points for their symbols:
math-verify's own comparison simplifies, which has no bound but an alarm that threads cannot set. So
a verdict never depends on how busy a machine is.
"""

import math
import re
import threading
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from itertools import pairwise, product
from string import ascii_lowercase
from typing import Any

from judging.rules.mathematics_reading import (
    LONGEST,
    Answer,
    UnreadError,
    read_answer,
    symbols,
)
from judging.rules.quantities import parse_unit

_NEAR = 0.01
"""Relative difference up to which two values may be one, rounded."""
_NEAR_CONVERTED = 0.2
"""The same of two values in different units: "6 feet" may be "1.8 m", and "3 miles" "5 km"."""
_MOST_PLACES = 4
"""Decimals from which on a number is taken for one that was not rounded."""
_DIGITS = 40
_SAME = 1e-25
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
"""What the fixed values of symbols are made of; expressions of more symbols are not compared."""
_SHORT_INTEGER = 5
"""Digits of whole numbers that are not taken for rounded ones, unless they end in two zeros."""
_MAGNITUDES = {
    "hundred": 2, "thousand": 3, "million": 6, "millions": 6, "mn": 6, "billion": 9, "billions": 9,
    "bn": 9, "trillion": 12,
}  # fmt: skip
_CURRENCIES = {"dollar": "$", "dollars": "$", "euro": "€", "euros": "€"}
_SEVERAL_SIZES = frozenset("ton tons pound pounds".split())
"""Units of more than one size, or of money."""
_FREE = frozenset("CKckmn")
"""Symbols for any constant or whole number: ``2k + 1`` and ``2k - 1`` are all odd numbers."""
_GROUPED = re.compile(r"(?<![\d.,])([1-9]\d{0,2})\.(\d{3})(?![\d.,])")
"""Three decimals, or thousands as in German: 2.962 m."""
_MATHEMATICS = re.compile(r"[\d\\^]")
_MOST_CHARS = 1_000
"""Characters of all references together that are read."""
_LOCK = threading.Lock()
"""math-verify's parser keeps tables that all threads would change."""


def same_mathematics(reference: str, answer: str) -> bool | None:
    """Tell whether an answer has the value of a reference, both as a whole mathematics.

    Fractions, decimals, percentages, roots, polynomials and units are equal by value, intervals by
    ends and brackets, sets without order, points with it, inequalities as their intervals.

    Returns:
        ``None`` if one of them is not read, or the two may be one value rounded, in another unit or
        of another kind.
    """
    # Here too, so that no long text stays in memory as a key.
    return _compared(reference, answer) if len(reference) <= LONGEST >= len(answer) else None


def is_long_to_read(texts: Iterable[str]) -> bool:
    """Tell whether reading some texts as mathematics takes seconds, for which others would wait."""
    short = (text for text in texts if len(text) <= LONGEST and _MATHEMATICS.search(text))
    return sum(map(len, short)) > _MOST_CHARS


@lru_cache(maxsize=1 << 14)
def _compared(reference: str, answer: str) -> bool | None:
    try:
        with _LOCK:
            is_same = _compare(read_answer(reference), read_answer(answer))
            if is_same is False and (_GROUPED.search(reference) or _GROUPED.search(answer)):
                readings = product(*((text, _as_in_german(text)) for text in (reference, answer)))
                are_apart = all(_compare(*map(read_answer, pair)) is False for pair in readings)
                return False if are_apart else None
            return is_same
    except (ArithmeticError, RecursionError, ValueError):
        return None


def _as_in_german(text: str) -> str:
    """Rewrite ``2.962 m`` as ``2962 m``, and ``2,962 km`` as ``2.962 km``."""
    return re.sub(r"(?<=\d),(?=\d)", ".", _GROUPED.sub(r"\1\2", text))


def answer_of(text: str) -> Answer:
    """Read a text as :func:`read_answer` does, one thread at a time."""
    with _LOCK:
        return read_answer(text)


def _compare(one: Answer, other: Answer) -> bool | None:
    """Tell whether two answers are equal; ``None`` if they are of kinds that are not compared."""
    kinds = {one.kind, other.kind}
    if one.name and other.name and one.name != other.name:
        return None
    if kinds == {"named"}:
        if one.marks == other.marks:
            return _all(map(_compare, one.items, other.items))
        return None
    if "named" in kinds and "equation" in kinds:
        return _is_multiple(_difference(one), _difference(other))
    for named, plain in ((one, other), (other, one)):
        if named.kind == "named":
            if len(named.items) == 1:
                return _compare(named.items[0], plain)
            is_in_order = "".join(named.marks) in ascii_lowercase  # (x, y), but not (b, m)
            if is_in_order and plain.kind == "tuple" and len(plain.items) == len(named.items):
                return _all(map(_compare, named.items, plain.items))
            return None
    if kinds == {"value"}:
        return _compare_values(one, other)
    if kinds == {"infinity"}:
        return one.marks == other.marks
    if kinds == {"equation"}:
        return _is_multiple(one.items[0], other.items[0])
    if kinds == {"matrix"}:
        if list(map(len, one.items)) != list(map(len, other.items)):
            return False
        cells = zip(sum(one.items, ()), sum(other.items, ()), strict=True)
        return _all(_compare(first, second) for first, second in cells)
    if kinds == {"tuple"}:
        return _compare_tuples(one, other)
    if kinds <= {"set", "list"}:
        return _compare_sets(one, other)
    if kinds == {"tuple", "list"}:
        is_same = len(one.items) == len(other.items) and _all(map(_compare, one.items, other.items))
        return True if is_same else None
    return False if kinds == {"value", "infinity"} else None


def _all(results: Any) -> bool | None:
    """Tell whether all of several comparisons hold; one that fails decides."""
    listed = list(results)
    return False if False in listed else None if None in listed else True


def _compare_tuples(one: Answer, other: Answer) -> bool | None:
    if len(one.items) != len(other.items):
        return False
    are_equal = _all(map(_compare, one.items, other.items))
    if not are_equal or one.marks == other.marks or len(one.items) > 2:
        return are_equal
    return False if one.is_exact or other.is_exact else None


def _compare_sets(one: Answer, other: Answer) -> bool | None:
    """Compare sets; two bare lists in different orders may be sequences."""
    unions = [each for each in (one, other) if each.marks]
    unlike = False if all(map(_is_apart, unions)) else None
    if len(one.items) != len(other.items):
        pairs = (one, other), (other, one)  # one of them may count a root twice
        is_repeated = all(
            any(_compare(item, each) is not False for each in others.items)
            for these, others in pairs
            for item in these.items
        )
        return None if is_repeated else unlike
    left = list(range(len(other.items)))
    found, is_open = [], False
    for item in one.items:
        results = {index: _compare(item, other.items[index]) for index in left}
        match = next((index for index, is_same in results.items() if is_same), None)
        is_open = is_open or (match is None and None in results.values())
        if match is not None:
            left.remove(match)
        found.append(match)
    if None in found:
        return None if is_open else unlike
    return None if one.kind == other.kind == "list" and found != sorted(found) else True  # type: ignore[type-var]


def _is_apart(union: Answer) -> bool:
    """Tell whether no intervals of a union touch, so that other intervals are another union."""
    pieces = []
    for piece in union.items:
        if piece.kind != "tuple" or len(piece.items) != 2:
            return False
        pieces.append((*map(_end, piece.items), *piece.marks))
    pieces.sort()
    return all(
        first[1] < second[0] or (first[1] == second[0] and first[3] + second[2] == ")(")
        for first, second in pairwise(pieces)
    )


def _end(end: Answer) -> float:
    """Find the place of an interval's end; raise ``UnreadError`` if it is no number."""
    if end.kind == "infinity":
        return -math.inf if end.marks[0] else math.inf
    if end.kind != "value" or symbols(end.items[0]):
        raise UnreadError("an end that is no number")
    return float(_context().re(_evaluate(end.items[0], {})))


def _compare_values(one: Answer, other: Answer) -> bool | None:
    [first], [second] = one.items, other.items
    powers, units = zip(*map(_magnitude_and_unit, (*one.marks, *other.marks)), strict=True)
    sizes = [_size(unit) for unit in units]
    is_known = all(size is not None for size in sizes) and sizes[0][0] == sizes[1][0]  # type: ignore[index]
    if units[0] != units[1] and not is_known:
        return None
    factors = [
        _context().mpf(10) ** power * (size[1] if size and is_known else 1)
        for power, size in zip(powers, sizes, strict=True)
    ]
    pairs = [(a * factors[0], b * factors[1]) for a, b in _values(first, second)]
    if all(_difference_of(*pair) <= _SAME for pair in pairs):
        return True
    left_out = [2] if "%" in units and units[0] != units[1] else []
    left_out += [3, 6, 9, 12] if 0 in powers and any(powers) else []  # 3, where it counts millions
    [(a, b), *_] = pairs
    if any(
        _difference_of(a * 10**k, b * 10**j) <= _NEAR for n in left_out for k, j in ((n, 0), (0, n))
    ):
        return None
    names = symbols(first)
    if names != symbols(second) or "i" in names:
        return None
    apart = [a - b for a, b in pairs]
    if _FREE & set(names) and all(_difference_of(apart[0], each) <= _SAME for each in apart):
        return None
    are_counts = one.is_exact and other.is_exact and units[0] == units[1] and not any(powers)
    if are_counts and all(map(_is_count, (first, second))):
        return False
    if not names and (_is_rounded(*pairs[0]) or _is_rounded(*pairs[0][::-1])):
        return None
    near = _NEAR_CONVERTED if _is_rounded_in(*sizes) else _NEAR
    return False if all(_difference_of(*pair) > near for pair in pairs) else None


def _is_rounded_in(one: tuple[str, Any] | None, other: tuple[str, Any] | None) -> bool:
    """Tell whether a value in one unit is mostly rounded in the other: feet in metres."""
    if not one or not other or one[0] not in ("length", "mass"):
        return False
    power = _context().log10(one[1] / other[1])
    return bool(_difference_of(power, _context().nint(power)) > _SAME)


def _is_rounded(short: Any, long: Any) -> bool:
    """Tell whether a number is another, which has more digits, rounded: 3.5 and 2√3, 1.8 and 1.78.

    A whole number or one of few decimals has two digits or more if it was rounded, or ends
    in many zeros: 8 million.
    """
    places = _places(short)
    if places == _MOST_PLACES:
        return False
    digits = str(int(_context().nint(abs(short) * 10**places)))
    significant = len(digits.rstrip("0"))
    num_zeros = len(digits) - significant
    is_long_enough = (
        significant > 1 or num_zeros > _MOST_PLACES or 0 < places < _MOST_PLACES <= _places(long)
    )
    step = _context().mpf(10) ** (num_zeros - places)
    return is_long_enough and abs(short - long) * 2 - step <= step * _SAME


def _places(number: Any) -> int:
    """Tell how many decimals a number has, or ``_MOST_PLACES`` if it has more."""
    scaled = [number * 10**places for places in range(_MOST_PLACES)]
    near = (_difference_of(each, _context().nint(each)) <= _SAME for each in scaled)
    return next((places for places, is_near in enumerate(near) if is_near), _MOST_PLACES)


def _is_count(number: Any) -> bool:
    digits = str(abs(int(number)))
    return len(digits) <= _SHORT_INTEGER and not digits.endswith("00")


def _size(unit: str) -> tuple[str, Any] | None:
    """Return dimension and size of a unit: those of a plain number if there is none."""
    if unit in ("", "%"):
        return "", _context().mpf(1) / (100 if unit else 1)
    known = parse_unit(unit)
    if (
        known.unit is None
        or unit in _SEVERAL_SIZES
        or len(known.words) != 1
        or not unit.isalpha()
        or not unit.islower()
    ):
        return None
    return known.unit.dimension, _context().mpf(repr(known.unit.factor))


def _magnitude_and_unit(unit: str) -> tuple[int, str]:
    """Split a unit such as ``million dollars`` into a power of ten and the unit itself."""
    words, power = unit.split(), 0
    while words and words[0] in _MAGNITUDES:
        power += _MAGNITUDES[words.pop(0)]
    rest = " ".join(words)
    return power, _CURRENCIES.get(rest, rest)


def _difference(answer: Answer) -> Any:
    """Return the left side less the right one of an equation, or of ``y = ...``."""
    if answer.kind == "equation":
        return answer.items[0]
    from sympy import Symbol

    [value], [name] = answer.items, answer.marks
    if value.kind != "value" or len(name) != 1 or value.marks[0]:
        raise UnreadError("no equation of values")
    return Symbol(name, real=True) - value.items[0]


def _is_multiple(one: Any, other: Any) -> bool | None:
    """Tell whether two sides that are zero are so at the same time, for one is a multiple."""
    if symbols(one) != symbols(other):
        return None
    pairs = _values(one, other)
    ratios = [a / b for a, b in pairs if b]
    is_same = len(ratios) > 1 and all(_difference_of(ratios[0], ratio) <= _SAME for ratio in ratios)
    return True if is_same else None


def _difference_of(one: Any, other: Any) -> float:
    """Return the relative difference of two numbers."""
    size = max(abs(one), abs(other))
    return float(abs(one - other) / size) if size else 0.0


def _values(one: Any, other: Any) -> list[tuple[Any, Any]]:
    """Return the values of two trees at the same points; ``UnreadError`` if both have too few."""
    names = sorted({*symbols(one), *symbols(other)})
    if len(names) > len(_PRIMES):
        raise UnreadError("many symbols")
    context, pairs = _context(), []
    for sign, shift in ((1, 0), (1, 1), (-1, 2), (1, 3)) if names else ((1, 0),):
        point = {
            name: sign * (context.sqrt(prime) + shift) / 2
            for name, prime in zip(names, _PRIMES, strict=False)
        }
        try:
            pair = _evaluate(one, point), _evaluate(other, point)
        except ZeroDivisionError:
            continue
        if all(context.isfinite(value) for value in pair):
            pairs.append(pair)
    if len(pairs) < (3 if names else 1):
        raise UnreadError("no values")
    return pairs


@cache
def _context() -> Any:
    from mpmath import MPContext

    context = MPContext()
    context.dps = _DIGITS
    return context


_LARGEST_LOGARITHM = 10_000
"""Bound on the natural logarithm of a power's size."""
_FUNCTIONS = frozenset("sin cos tan cot sec csc asin acos atan".split())


def _evaluate(tree: Any, point: Mapping[str, Any]) -> Any:
    """Return the value of math-verify's tree at a point, real or complex."""
    context, name = _context(), tree.func.__name__
    if tree.is_Symbol:
        return point[tree.name]
    if tree.is_Rational:
        return context.mpf(int(tree.p)) / int(tree.q)
    if name in ("Pi", "Exp1"):
        return +(context.pi if name == "Pi" else context.e)
    parts = [_evaluate(part, point) for part in tree.args]
    if name == "Add":
        return context.fsum(parts)
    if name == "Mul":
        return context.fprod(parts)
    if name in ("Pow", "exp"):
        base, exponent = parts if name == "Pow" else (context.e, parts[0])
        if context.im(base) == 0 and context.re(base) < 0 and not context.isint(exponent * 2):
            raise ZeroDivisionError  # a real root for some, a complex one for others
        if base and abs(exponent * context.log(abs(base))) > _LARGEST_LOGARITHM:
            raise UnreadError("large")
        return context.power(base, exponent)
    if name == "UnevaluatedExpr":
        return parts[0]
    if name == "Abs":
        return abs(parts[0])
    if name == "log":
        return context.log(*parts)
    if name in _FUNCTIONS and len(parts) == 1:
        return getattr(context, name)(parts[0])
    raise UnreadError(f"no values of {name}")
