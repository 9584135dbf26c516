"""Problems of mathematics: exact values, each written in forms that are equal by construction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from random import Random
from typing import Any

from data_prep.made.words.names import Language
from data_prep.made.words.wordings import words_of


@dataclass(frozen=True)
class Form:
    """One way to write an answer."""

    name: str
    """Name of the form, such as ``fraction``, which all answers in it share."""
    shown: str
    """As it stands in a sentence: LaTeX between dollar signs, or plain text."""
    held_out: bool = False
    """Kept for test data."""

    @property
    def is_latex(self) -> bool:
        """Tell LaTeX from plain text."""
        return self.shown.startswith("$")

    @property
    def text(self) -> str:
        """Strip the form of dollar signs."""
        return self.shown.strip("$")

    @property
    def boxed(self) -> str:
        r"""Write the form as it stands in ``\boxed{}``: words as text."""
        is_words = not self.is_latex and any(map(str.isalpha, self.text))
        return rf"\text{{{self.text}}}" if is_words else self.text


@dataclass(frozen=True)
class Problem:
    """A question with one answer in many forms, and the forms of answers that it is not."""

    kind: str
    language: Language
    question: str
    references: tuple[str, ...]
    right: tuple[Form, ...]
    wrong: tuple[tuple[Form, ...], ...]
    """Forms of each wrong answer."""
    choices: tuple[str, ...] = ()


Value = tuple[int, ...]
"""The numbers that an answer is made of; what they mean depends on the kind."""
Drawn = tuple[str, Value, Sequence[Value]]
"""A problem in LaTeX, the right value, and wrong ones near it."""
Written = tuple[dict[str, str], dict[str, str]]
"""A value in the forms of training data, and in those that are held out, by name."""
Kind = tuple[Callable[[Random], Drawn], Callable[[Value], Written], Callable[[Value], Any]]


def make_problem(rng: Random, kind: str, language: Language) -> Problem:
    """Draw a problem of a kind, such as ``radical``.

    Its wrong values differ from the right one as values, not only in their form.
    """
    draw, write, exact = KINDS[kind]
    problem, value, others = draw(rng)
    right, *wrong = (
        tuple(
            Form(name, shown, held_out=bool(side))
            for side, texts in enumerate(write(each))
            for name, shown in texts.items()
        )
        for each in (value, *(other for other in others if exact(other) != exact(value)))
    )
    reference = rng.choice([form for form in right if not form.held_out])
    asked = rng.choice(words_of("objective")["questions"][kind][language]).replace("@p", problem)
    written = reference.shown if rng.random() < 0.5 else reference.text
    return Problem(kind, language, asked, (written,), right, tuple(wrong))


def _signed(numbers: Iterable[tuple[int, str]]) -> str:
    """Write ``3x - 2`` of ``(3, "x"), (-2, "")``; terms of 0 are left out."""
    text = ""
    for number, factor in numbers:
        if number == 0:
            continue
        size = str(abs(number)) if abs(number) != 1 or not factor else ""
        sign = (" - " if number < 0 else " + ") if text else ("-" if number < 0 else "")
        text += f"{sign}{size}{factor}"
    return text or "0"


def _draw_number(rng: Random) -> Drawn:
    bottom = rng.choice((2, 4, 5, 8, 20, 25, 40))
    top = rng.choice([n for n in range(1, 4 * bottom) if gcd(n, bottom) == 1])
    first = rng.randint(1, 3 * bottom)
    problem = rf"$\frac{{{top + first}}}{{{bottom}}} - \frac{{{first}}}{{{bottom}}}$"
    others = [(top + 1, bottom), (bottom, top), (-top, bottom), (top, bottom + 1),
              (top, 10 * bottom)]  # fmt: skip
    return problem, (top, bottom), others


def _write_number(value: Value) -> Written:
    exact = Fraction(*value)
    sign, top, bottom = "-" if exact < 0 else "", abs(exact.numerator), exact.denominator
    whole, rest = divmod(top, bottom)
    train = {"fraction": rf"${sign}\frac{{{top}}}{{{bottom}}}$", "slash": f"{sign}{top}/{bottom}"}
    test = {
        "unreduced": rf"${sign}\dfrac{{{3 * top}}}{{{3 * bottom}}}$",
        "short_slash": f"${sign}{top}/{bottom}$",
    }
    if whole and rest:
        test["mixed"] = rf"${sign}{whole}\tfrac{{{rest}}}{{{bottom}}}$"
    if 1000000 % bottom == 0:  # the decimals end
        decimal, percent = (
            f"{sign}{top * factor // bottom / 1000000:.6f}".rstrip("0").rstrip(".")
            for factor in (1000000, 100000000)
        )
        train |= {"decimal": decimal, "percent": rf"${percent}\%$"}
        zeros = f"{decimal}00" if "." in decimal else f"{decimal}.0"
        test |= {"plain_percent": f"{percent}%", "zeros": f"${zeros}$"}
    return train, test


def _draw_whole(rng: Random) -> Drawn:
    value, taken = rng.randint(1200, 99999), rng.randint(100, 9999)
    digits = list(str(value))
    digits[-2], digits[-1] = digits[-1], digits[-2]
    others = [(value + 1,), (value - 10,), (int("".join(digits)),), (value * 10,), (-value,)]
    return f"${value + taken} - {taken}$", (value,), others


def _write_whole(value: Value) -> Written:
    [number] = value
    sign, digits = "-" if number < 0 else "", str(abs(number)).rstrip("0")
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    power, grouped = len(str(abs(number))) - 1, f"{number:,}"
    return (
        {"digits": str(number), "latex_digits": f"${number}$", "point": f"{number}.0"},
        {
            "thousands": grouped,
            "latex_thousands": f"${grouped}$".replace(",", "{,}"),
            "scientific": rf"${sign}{mantissa} \times 10^{{{power}}}$",
        },
    )


def _draw_radical(rng: Random) -> Drawn:
    factor, root, added = rng.randint(2, 9), rng.choice((2, 3, 5, 6, 7, 10, 11)), rng.randint(-6, 6)
    inner = rng.randint(1, factor - 1)
    problem = rf"{inner}\sqrt{{{root}}} + {factor - inner}\sqrt{{{root}}}"
    problem = f"${problem} {added:+d}$" if added else f"${problem}$"
    others = [
        (factor + 1, root, added), (factor, root + 1, added), (factor, root, added + 2),
        (factor * factor, root, added), (-factor, root, added), (1, factor * root, added),
    ]  # fmt: skip
    return problem, (factor, root, added), others


def _write_radical(value: Value) -> Written:
    factor, root, added = value
    inside, sign = factor * factor * root, "-" if factor < 0 else ""
    size = "" if abs(factor) == 1 else str(abs(factor))
    after = f" {'+' if added > 0 else '-'} {abs(added)}" if added else ""
    before = f"{added} {'-' if factor < 0 else '+'} " if added else sign
    return (
        {
            "radical": rf"${sign}{size}\sqrt{{{root}}}{after}$",
            "one_root": rf"${sign}\sqrt{{{inside}}}{after}$",
            "dotted": rf"${sign}{size or 1} \cdot \sqrt{{{root}}}{after}$",
        },
        {
            "root_sign": f"{sign}{size}√{root}{after}",
            "function": f"{sign}{size or 1}*sqrt({root}){after}",
            "turned": rf"${before}{size}\sqrt{{{root}}}$",
            "rational_top": rf"${sign}\frac{{{abs(factor) * root}}}{{\sqrt{{{root}}}}}{after}$",
            "power": rf"${sign}{size or 1} \cdot {root}^{{1/2}}{after}$",
        },
    )


def _draw_polynomial(rng: Random) -> Drawn:
    first, second = rng.sample([n for n in range(-8, 9) if n], 2)
    spread = rng.randint(1, 9)
    problem = _signed([(1, "x^2"), (first + second + spread, "x"), (first * second, "")])
    others = [(-first, -second), (first, -second), (first + 1, second), (first, second - 1),
              (first + 1, second - 1)]  # fmt: skip
    return f"${problem} - {spread}x$", (first, second), others


def _write_polynomial(value: Value) -> Written:
    first, second = value
    total, product = first + second, first * second
    expanded = _signed([(1, "x^2"), (total, "x"), (product, "")])
    turned = _signed([(product, ""), (total, "x"), (1, "x^2")])
    factors = f"({_signed([(1, 'x'), (first, '')])})({_signed([(1, 'x'), (second, '')])})"
    nested = f"x(x {total:+d}) {product:+d}" if total and product else expanded
    rest = 4 * product - total * total
    square = rf"\left(x {total:+d}/2\right)^2" if total else "x^2"
    return (
        {"expanded": f"${expanded}$", "factored": f"${factors}$", "plain": expanded},
        {
            "superscript": expanded.replace("^2", "²"),
            "code": factors.replace(")(", ")*("),
            "turned": f"${turned}$",
            "square": rf"${square} {rest:+d}/4$" if rest else f"${square}$",
            "nested": f"${nested}$",
        },
    )


def _draw_interval(rng: Random) -> Drawn:
    low, width = rng.randint(-9, 6), rng.randint(2, 9)
    closed_low, closed_high = rng.randint(0, 1), rng.randint(0, 1)
    high = low + width
    shift = rng.randint(1, 5)
    signs = [r"\le" if closed else "<" for closed in (closed_low, closed_high)]
    problem = f"${low + shift} {signs[0]} x + {shift} {signs[1]} {high + shift}$"
    others = [
        (low, high, 1 - closed_low, closed_high), (low, high, closed_low, 1 - closed_high),
        (low + 1, high, closed_low, closed_high), (low, high + 1, closed_low, closed_high),
        (-high, -low, closed_low, closed_high),
    ]  # fmt: skip
    return problem, (low, high, closed_low, closed_high), others


def _write_interval(value: Value) -> Written:
    low, high, closed_low, closed_high = value
    left, right = "[" if closed_low else "(", "]" if closed_high else ")"
    signs = [r"\le" if closed else "<" for closed in (closed_low, closed_high)]
    turned = [r"\geq" if closed else ">" for closed in (closed_high, closed_low)]
    below, above = (sign.replace(r"\le", "<=") for sign in signs)
    return (
        {
            "brackets": f"${left}{low}, {high}{right}$",
            "chain": f"${low} {signs[0]} x {signs[1]} {high}$",
        },
        {
            "plain_brackets": f"{left}{low}, {high}{right}",
            "member": rf"$x \in \left{left}{low},\, {high}\right{right}$",
            "turned": f"${high} {turned[0]} x {turned[1]} {low}$",
            "two": f"x {below.replace('<', '>')} {low} and x {above} {high}",
        },
    )


def _draw_ray(rng: Random) -> Drawn:
    end, closed, upward, factor = rng.randint(-9, 9), *rng.choices((0, 1), k=2), rng.randint(2, 5)
    sign = {(0, 0): "<", (1, 0): r"\le", (0, 1): ">", (1, 1): r"\ge"}[closed, upward]
    others = [(end, 1 - closed, upward), (end, closed, 1 - upward), (end + 1, closed, upward),
              (-end, closed, upward)]  # fmt: skip
    return f"${factor}x {sign} {factor * end}$", (end, closed, upward), others


def _write_ray(value: Value) -> Written:
    end, closed, upward = value
    brackets = rf"{'[' if closed else '('}{end}, \infty)"
    if not upward:
        brackets = rf"(-\infty, {end}{']' if closed else ')'}"
    signs = ("<", r"\le", ">", r"\ge")
    sign, turned = signs[2 * upward + closed], signs[2 * (1 - upward) + closed]
    plain = sign.replace(r"\le", "≤").replace(r"\ge", "≥")
    return (
        {"brackets": f"${brackets}$", "sign": f"$x {sign} {end}$"},
        {
            "turned": f"${end} {turned} x$",
            "plain": f"x {plain} {end}",
            "signed_infinity": f"${brackets}$".replace(r" \infty", r" +\infty"),
        },
    )


def _draw_set(rng: Random) -> Drawn:
    first, second = sorted(rng.sample(range(-9, 10), 2))
    problem = _signed([(1, "x^2"), (-first - second, "x"), (first * second, "")])
    others = [(-second, -first), (first, second + 1), (first - 1, second), (first,),
              (first, second, second + 3)]  # fmt: skip
    return f"${problem} = 0$", (first, second), others


def _write_set(value: Value) -> Written:
    turned = value[::-1]
    listed, turned_list = ", ".join(map(str, value)), r",\; ".join(map(str, turned))
    test = {
        "turned_braces": r"$\left\{" + turned_list + r"\right\}$",
        "or": "$" + r" \text{ or } ".join(f"x = {number}" for number in turned) + "$",
        "plain_or": " or ".join(f"x={number}" for number in value),
        "and": " and ".join(map(str, value)),
        "indexed": "$" + ", ".join(f"x_{n} = {number}" for n, number in enumerate(value, 1)) + "$",
    }
    if len(value) == 2 and value[0] == -value[1]:
        test["plus_minus"] = rf"$x = \pm {value[1]}$"
    equations = ", ".join(f"x = {number}" for number in value)
    braces = rf"$\{{{listed}\}}$"
    return {"braces": braces, "equations": f"${equations}$", "bare": f"${listed}$"}, test


def _draw_point(rng: Random) -> Drawn:
    first, second = rng.sample(range(-9, 10), 2)
    problem = f"$x + y = {first + second},\\ x - y = {first - second}$"
    others = [(second, first), (-first, second), (first, second + 1), (first - 1, second)]
    return problem, (first, second), others


def _write_point(value: Value) -> Written:
    first, second = value
    pair = f"({first}, {second})"
    return (
        {"pair": f"${pair}$", "plain_pair": pair, "equations": f"$x = {first}, y = {second}$"},
        {
            "spaced": rf"$\left({first},\; {second}\right)$",
            "named": f"$(x, y) = {pair}$",
            "and": f"x = {first} and y = {second}",
            "turned": f"$y = {second},\\ x = {first}$",
        },
    )


def _draw_matrix(rng: Random) -> Drawn:
    value = tuple(rng.randint(-9, 9) for _ in range(4))
    part = tuple(rng.randint(-9, 9) for _ in range(4))
    rest = tuple(whole - piece for whole, piece in zip(value, part, strict=True))
    problem = f"${_matrix(part, 'pmatrix')} + {_matrix(rest, 'pmatrix')}$"
    a, b, c, d = value
    return problem, value, [(a, c, b, d), (a, b, c, d + 1), (a + 2, b, c, d), (d, -b, -c, a)]


def _matrix(value: Value, environment: str) -> str:
    a, b, c, d = value
    return rf"\begin{{{environment}}} {a} & {b} \\ {c} & {d} \end{{{environment}}}"


def _write_matrix(value: Value) -> Written:
    a, b, c, d = value
    round_ = f"${_matrix(value, 'pmatrix')}$"
    array = _matrix(value, "array").replace("{array}", "{array}{cc}", 1)
    return (
        {"pmatrix": round_, "bmatrix": f"${_matrix(value, 'bmatrix')}$"},
        {
            "array": rf"$\left[{array}\right]$",
            "lists": f"[[{a}, {b}], [{c}, {d}]]",
            "tight": round_.replace(" ", "").replace(r"\\", r"\\[2pt]"),
        },
    )


def _draw_line(rng: Random) -> Drawn:
    slope, start = rng.choice([n for n in range(-7, 8) if n]), rng.randint(-9, 9)
    others = [(-slope, start), (slope, -start), (slope + 1, start), (slope, start + 1)]
    problem = f"slope ${slope}$ through $(1, {slope + start})$"
    return problem, (slope, start), [other for other in others if other[0]]


def _write_line(value: Value) -> Written:
    slope, start = value
    right = _signed([(slope, "x"), (start, "")])
    return (
        {"slope": f"$y = {right}$", "plain_slope": f"y = {right}"},
        {
            "turned": f"$y = {_signed([(start, ''), (slope, 'x')])}$",
            "zero": f"${_signed([(slope, 'x'), (-1, 'y'), (start, '')])} = 0$",
            "doubled": f"$2y = {_signed([(2 * slope, 'x'), (2 * start, '')])}$",
            "left": f"${right} = y$",
        },
    )


def _draw_unit(rng: Random) -> Drawn:
    value, first = rng.randint(11, 99) * 10, rng.randint(1, 10) * 10
    others = [(value * 10,), (value + 10,), (value // 10,), (value + 100,)]
    return f"${first}$ mm, ${(value - first) / 10:g}$ cm", (value,), others


def _write_unit(value: Value) -> Written:
    mm, cm, m = (f"{value[0] / size:g}" for size in (1, 10, 1000))
    return (
        {"cm": f"{cm} cm", "text_mm": rf"${mm}\text{{ mm}}$"},
        {
            "roman_cm": rf"${cm}\,\mathrm{{cm}}$",
            "m": f"{m} m",
            "tight_mm": f"{mm}mm",
            "words": f"{cm} centimetres",
        },
    )


def _draw_angle(rng: Random) -> Drawn:
    bottom = rng.choice((3, 4, 6, 9, 10, 12))
    top = rng.choice([n for n in range(1, 2 * bottom) if gcd(n, bottom) == 1])
    others = [(top + bottom, bottom), (bottom, top), (2 * top, bottom), (-top, bottom),
              (top, bottom + 1)]  # fmt: skip
    return rf"${180 * top // bottom}^\circ$", (top, bottom), others


def _write_angle(value: Value) -> Written:
    exact = Fraction(*value)
    sign, top, bottom = "-" if exact < 0 else "", abs(exact.numerator), exact.denominator
    size = "" if top == 1 else str(top)
    return (
        {
            "over": rf"${sign}\frac{{{size}\pi}}{{{bottom}}}$",
            "factor": rf"${sign}\frac{{{top}}}{{{bottom}}}\pi$",
        },
        {
            "sign": f"{sign}{size}π/{bottom}",
            "word": f"{sign}{top}*pi/{bottom}",
            "unreduced": rf"${sign}\frac{{{2 * top}\pi}}{{{2 * bottom}}}$",
            "slash": rf"${sign}{size}\pi/{bottom}$",
        },
    )


def _under_root(value: Value) -> Value:
    factor, root, added = value
    return factor * abs(factor) * root, added


KINDS: dict[str, Kind] = {
    "number": (_draw_number, _write_number, lambda value: Fraction(*value)),
    "whole": (_draw_whole, _write_whole, tuple),
    "radical": (_draw_radical, _write_radical, _under_root),
    "polynomial": (_draw_polynomial, _write_polynomial, sorted),
    "interval": (_draw_interval, _write_interval, tuple),
    "ray": (_draw_ray, _write_ray, tuple),
    "set": (_draw_set, _write_set, tuple),
    "point": (_draw_point, _write_point, tuple),
    "matrix": (_draw_matrix, _write_matrix, tuple),
    "line": (_draw_line, _write_line, tuple),
    "unit": (_draw_unit, _write_unit, tuple),
    "angle": (_draw_angle, _write_angle, lambda value: Fraction(*value)),
}
"""How problems of each kind are drawn, how their values are written, and what makes two equal."""
