"""Written forms of answers: what a problem is made of, before a response is put into words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from random import Random
from typing import Any, Literal

from data_prep.made.words.names import Language
from data_prep.made.words.wordings import words_of

FormSplit = Literal["train", "test"]


@dataclass(frozen=True)
class Form:
    """One way to write an answer."""

    name: str
    """Name of the form, such as ``fraction``, which all answers in it share."""
    text: str
    is_latex: bool = False
    held_out: bool = False
    """Kept for test data."""

    @property
    def shown(self) -> str:
        """Return the form as it stands in a sentence."""
        return f"${self.text}$" if self.is_latex else self.text

    @property
    def boxed(self) -> str:
        r"""Return the form as it stands in ``\boxed{}``: words as text."""
        is_words = not self.is_latex and any(map(str.isalpha, self.text))
        return rf"\text{{{self.text}}}" if is_words else self.text


def latex(name: str, text: str, *, held_out: bool = False) -> Form:
    """Return a form in LaTeX."""
    return Form(name, text, is_latex=True, held_out=held_out)


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
Draw = Callable[[Random], tuple[str, Value, Sequence[Value]]]
"""Draws the problem in LaTeX, the right value, and wrong ones near it."""
Write = Callable[[Value], list[Form]]


def make_problem(rng: Random, kind: str, language: Language) -> Problem:
    """Draw a problem of a kind, such as ``radical``.

    Its wrong values differ from the right one as values, not only in their form.
    """
    draw, write, exact = KINDS[kind]
    problem, value, others = draw(rng)
    wrong = [other for other in others if exact(other) != exact(value)]
    forms = write(value)
    reference = rng.choice([form for form in forms if not form.held_out])
    asked = rng.choice(words_of("objective")["questions"][kind][language]).replace("@p", problem)
    return Problem(
        kind,
        language,
        asked,
        (reference.shown if rng.random() < 0.5 else reference.text,),
        tuple(forms),
        tuple(tuple(write(other)) for other in wrong),
    )


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


def _draw_number(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    bottom = rng.choice((2, 4, 5, 8, 20, 25, 40))
    top = rng.choice([n for n in range(1, 4 * bottom) if gcd(n, bottom) == 1])
    first = rng.randint(1, 3 * bottom)
    problem = rf"$\frac{{{top + first}}}{{{bottom}}} - \frac{{{first}}}{{{bottom}}}$"
    others = [
        (top + 1, bottom),
        (bottom, top),
        (-top, bottom),
        (top, bottom + 1),
        (top, 10 * bottom),
    ]
    return problem, (top, bottom), others


def _write_number(value: Value) -> list[Form]:
    exact = Fraction(*value)
    sign, top, bottom = "-" if exact < 0 else "", abs(exact.numerator), exact.denominator
    whole, rest = divmod(top, bottom)
    forms = [
        latex("fraction", rf"{sign}\frac{{{top}}}{{{bottom}}}"),
        Form("slash", f"{sign}{top}/{bottom}"),
        latex("unreduced", rf"{sign}\dfrac{{{3 * top}}}{{{3 * bottom}}}", held_out=True),
        latex("short_slash", f"{sign}{top}/{bottom}", held_out=True),
    ]
    if whole and rest:
        mixed = rf"{sign}{whole}\tfrac{{{rest}}}{{{bottom}}}"
        forms.append(latex("mixed", mixed, held_out=True))
    if 1000000 % bottom == 0:  # the decimals end
        decimal = f"{sign}{top * 1000000 // bottom / 1000000:.6f}".rstrip("0").rstrip(".")
        percent = f"{sign}{top * 100000000 // bottom / 1000000:.6f}".rstrip("0").rstrip(".")
        forms += [
            Form("decimal", decimal),
            latex("percent", rf"{percent}\%"),
            Form("plain_percent", f"{percent}%", held_out=True),
            latex("zeros", f"{decimal}00" if "." in decimal else f"{decimal}.0", held_out=True),
        ]
    return forms


def _draw_whole(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    value, taken = rng.randint(1200, 99999), rng.randint(100, 9999)
    digits = list(str(value))
    digits[-2], digits[-1] = digits[-1], digits[-2]
    others = [(value + 1,), (value - 10,), (int("".join(digits)),), (value * 10,), (-value,)]
    return f"${value + taken} - {taken}$", (value,), others


def _write_whole(value: Value) -> list[Form]:
    [number] = value
    sign, digits = "-" if number < 0 else "", str(abs(number)).rstrip("0")
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    power = len(str(abs(number))) - 1
    return [
        Form("digits", str(number)),
        latex("latex_digits", str(number)),
        Form("point", f"{number}.0"),
        Form("thousands", f"{number:,}", held_out=True),
        latex("latex_thousands", f"{number:,}".replace(",", "{,}"), held_out=True),
        latex("scientific", rf"{sign}{mantissa} \times 10^{{{power}}}", held_out=True),
    ]


def _draw_radical(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    factor, root, added = rng.randint(2, 9), rng.choice((2, 3, 5, 6, 7, 10, 11)), rng.randint(-6, 6)
    inner = rng.randint(1, factor - 1)
    problem = rf"{inner}\sqrt{{{root}}} + {factor - inner}\sqrt{{{root}}}"
    problem = f"${problem} {added:+d}$" if added else f"${problem}$"
    others = [
        (factor + 1, root, added), (factor, root + 1, added), (factor, root, added + 2),
        (factor * factor, root, added), (-factor, root, added), (1, factor * root, added),
    ]  # fmt: skip
    return problem, (factor, root, added), others


def _write_radical(value: Value) -> list[Form]:
    factor, root, added = value
    inside, sign = factor * factor * root, "-" if factor < 0 else ""
    size = "" if abs(factor) == 1 else str(abs(factor))
    after = f" {'+' if added > 0 else '-'} {abs(added)}" if added else ""
    before = f"{added} {'-' if factor < 0 else '+'} " if added else sign
    return [
        latex("radical", rf"{sign}{size}\sqrt{{{root}}}{after}"),
        latex("one_root", rf"{sign}\sqrt{{{inside}}}{after}"),
        latex("dotted", rf"{sign}{size or 1} \cdot \sqrt{{{root}}}{after}"),
        Form("root_sign", f"{sign}{size}√{root}{after}", held_out=True),
        Form("function", f"{sign}{size or 1}*sqrt({root}){after}", held_out=True),
        latex("turned", rf"{before}{size}\sqrt{{{root}}}", held_out=True),
        latex("rational_top", rf"{sign}\frac{{{abs(factor) * root}}}{{\sqrt{{{root}}}}}{after}",
              held_out=True),
        latex("power", rf"{sign}{size or 1} \cdot {root}^{{1/2}}{after}", held_out=True),
    ]  # fmt: skip


def _draw_polynomial(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    first, second = rng.sample([n for n in range(-8, 9) if n], 2)
    spread = rng.randint(1, 9)
    problem = _signed([(1, "x^2"), (first + second + spread, "x"), (first * second, "")])
    others = [
        (-first, -second), (first, -second), (first + 1, second), (first, second - 1),
        (first + 1, second - 1),
    ]  # fmt: skip
    return f"${problem} - {spread}x$", (first, second), others


def _write_polynomial(value: Value) -> list[Form]:
    first, second = value
    total, product = first + second, first * second
    expanded = _signed([(1, "x^2"), (total, "x"), (product, "")])
    turned = _signed([(product, ""), (total, "x"), (1, "x^2")])
    factors = f"({_signed([(1, 'x'), (first, '')])})({_signed([(1, 'x'), (second, '')])})"
    rest = 4 * product - total * total
    square = rf"\left(x {total:+d}/2\right)^2" if total else "x^2"
    return [
        latex("expanded", expanded),
        latex("factored", factors),
        Form("plain", expanded),
        Form("superscript", expanded.replace("^2", "²"), held_out=True),
        Form("code", factors.replace(")(", ")*("), held_out=True),
        latex("turned", turned, held_out=True),
        latex("square", rf"{square} {rest:+d}/4" if rest else square, held_out=True),
        latex("nested", f"x(x {total:+d}) {product:+d}" if total and product else expanded,
              held_out=True),
    ]  # fmt: skip


def _draw_interval(rng: Random) -> tuple[str, Value, Sequence[Value]]:
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


def _write_interval(value: Value) -> list[Form]:
    low, high, closed_low, closed_high = value
    left, right = "[" if closed_low else "(", "]" if closed_high else ")"
    signs = [r"\le" if closed else "<" for closed in (closed_low, closed_high)]
    plain = [sign.replace(r"\le", "<=") for sign in signs]
    turned = [r"\geq" if closed else ">" for closed in (closed_high, closed_low)]
    above, below = plain[0].replace("<", ">"), plain[1]
    return [
        latex("brackets", f"{left}{low}, {high}{right}"),
        latex("chain", f"{low} {signs[0]} x {signs[1]} {high}"),
        Form("plain_brackets", f"{left}{low}, {high}{right}", held_out=True),
        latex("member", rf"x \in \left{left}{low},\, {high}\right{right}", held_out=True),
        latex("turned", f"{high} {turned[0]} x {turned[1]} {low}", held_out=True),
        Form("two", f"x {above} {low} and x {below} {high}", held_out=True),
    ]


def _draw_ray(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    end, closed, upward, factor = rng.randint(-9, 9), *rng.choices((0, 1), k=2), rng.randint(2, 5)
    sign = {(0, 0): "<", (1, 0): r"\le", (0, 1): ">", (1, 1): r"\ge"}[closed, upward]
    others = [(end, 1 - closed, upward), (end, closed, 1 - upward), (end + 1, closed, upward),
              (-end, closed, upward)]  # fmt: skip
    return f"${factor}x {sign} {factor * end}$", (end, closed, upward), others


def _write_ray(value: Value) -> list[Form]:
    end, closed, upward = value
    brackets = rf"{'[' if closed else '('}{end}, \infty)"
    if not upward:
        brackets = rf"(-\infty, {end}{']' if closed else ')'}"
    signs = ("<", r"\le", ">", r"\ge")
    sign, turned = signs[2 * upward + closed], signs[2 * (1 - upward) + closed]
    plain = sign.replace(r"\le", "≤").replace(r"\ge", "≥")
    return [
        latex("brackets", brackets),
        latex("sign", f"x {sign} {end}"),
        latex("turned", f"{end} {turned} x", held_out=True),
        Form("plain", f"x {plain} {end}", held_out=True),
        latex("signed_infinity", brackets.replace(r" \infty", r" +\infty"), held_out=True),
    ]


def _draw_set(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    first, second = sorted(rng.sample(range(-9, 10), 2))
    problem = _signed([(1, "x^2"), (-first - second, "x"), (first * second, "")])
    others = [(-second, -first), (first, second + 1), (first - 1, second), (first,),
              (first, second, second + 3)]  # fmt: skip
    return f"${problem} = 0$", (first, second), others


def _write_set(value: Value) -> list[Form]:
    turned = value[::-1]
    forms = [
        latex("braces", rf"\{{{', '.join(map(str, value))}\}}"),
        latex("equations", ", ".join(f"x = {number}" for number in value)),
        latex("bare", ", ".join(map(str, value))),
        latex("turned_braces", r"\left\{" + r",\; ".join(map(str, turned)) + r"\right\}",
              held_out=True),
        latex("or", r" \text{ or } ".join(f"x = {number}" for number in turned), held_out=True),
        Form("plain_or", " or ".join(f"x={number}" for number in value), held_out=True),
        Form("and", " and ".join(map(str, value)), held_out=True),
        latex("indexed", ", ".join(f"x_{n} = {number}" for n, number in enumerate(value, 1)),
              held_out=True),
    ]  # fmt: skip
    if len(value) == 2 and value[0] == -value[1]:
        forms.append(latex("plus_minus", rf"x = \pm {value[1]}", held_out=True))
    return forms


def _draw_point(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    first, second = rng.sample(range(-9, 10), 2)
    problem = f"$x + y = {first + second},\\ x - y = {first - second}$"
    others = [(second, first), (-first, second), (first, second + 1), (first - 1, second)]
    return problem, (first, second), others


def _write_point(value: Value) -> list[Form]:
    first, second = value
    return [
        latex("pair", f"({first}, {second})"),
        Form("plain_pair", f"({first}, {second})"),
        latex("equations", f"x = {first}, y = {second}"),
        latex("spaced", rf"\left({first},\; {second}\right)", held_out=True),
        latex("named", f"(x, y) = ({first}, {second})", held_out=True),
        Form("and", f"x = {first} and y = {second}", held_out=True),
        latex("turned", f"y = {second},\\ x = {first}", held_out=True),
    ]


def _draw_matrix(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    value = tuple(rng.randint(-9, 9) for _ in range(4))
    part = tuple(rng.randint(-9, 9) for _ in range(4))
    rest = tuple(whole - piece for whole, piece in zip(value, part, strict=True))
    problem = f"${_matrix(part, 'pmatrix')} + {_matrix(rest, 'pmatrix')}$"
    a, b, c, d = value
    return problem, value, [(a, c, b, d), (a, b, c, d + 1), (a + 2, b, c, d), (d, -b, -c, a)]


def _matrix(value: Value, environment: str) -> str:
    a, b, c, d = value
    return rf"\begin{{{environment}}} {a} & {b} \\ {c} & {d} \end{{{environment}}}"


def _write_matrix(value: Value) -> list[Form]:
    a, b, c, d = value
    array = _matrix(value, "array").replace("{array}", "{array}{cc}", 1)
    return [
        latex("pmatrix", _matrix(value, "pmatrix")),
        latex("bmatrix", _matrix(value, "bmatrix")),
        latex("array", rf"\left[{array}\right]", held_out=True),
        Form("lists", f"[[{a}, {b}], [{c}, {d}]]", held_out=True),
        latex("tight", _matrix(value, "pmatrix").replace(" ", "").replace(r"\\", r"\\[2pt]"),
              held_out=True),
    ]  # fmt: skip


def _draw_line(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    slope, start = rng.choice([n for n in range(-7, 8) if n]), rng.randint(-9, 9)
    others = [(-slope, start), (slope, -start), (slope + 1, start), (slope, start + 1)]
    problem = f"slope ${slope}$ through $(1, {slope + start})$"
    return problem, (slope, start), [other for other in others if other[0]]


def _write_line(value: Value) -> list[Form]:
    slope, start = value
    right = _signed([(slope, "x"), (start, "")])
    return [
        latex("slope", f"y = {right}"),
        Form("plain_slope", f"y = {right}"),
        latex("turned", f"y = {_signed([(start, ''), (slope, 'x')])}", held_out=True),
        latex("zero", f"{_signed([(slope, 'x'), (-1, 'y'), (start, '')])} = 0", held_out=True),
        latex("doubled", f"2y = {_signed([(2 * slope, 'x'), (2 * start, '')])}", held_out=True),
        latex("left", f"{right} = y", held_out=True),
    ]


_LENGTHS = {"mm": 1, "cm": 10, "m": 1000}


def _draw_unit(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    value, first = rng.randint(11, 99) * 10, rng.randint(1, 10) * 10
    others = [(value * 10,), (value + 10,), (value // 10,), (value + 100,)]
    return f"${first}$ mm, ${(value - first) / 10:g}$ cm", (value,), others


def _write_unit(value: Value) -> list[Form]:
    [millimetres] = value
    texts = {unit: f"{millimetres / size:g}" for unit, size in _LENGTHS.items()}
    return [
        Form("cm", f"{texts['cm']} cm"),
        latex("text_mm", rf"{texts['mm']}\text{{ mm}}"),
        latex("roman_cm", rf"{texts['cm']}\,\mathrm{{cm}}", held_out=True),
        Form("m", f"{texts['m']} m", held_out=True),
        Form("tight_mm", f"{texts['mm']}mm", held_out=True),
        Form("words", f"{texts['cm']} centimetres", held_out=True),
    ]


def _draw_angle(rng: Random) -> tuple[str, Value, Sequence[Value]]:
    bottom = rng.choice((3, 4, 6, 9, 10, 12))
    top = rng.choice([n for n in range(1, 2 * bottom) if gcd(n, bottom) == 1])
    others = [(top + bottom, bottom), (bottom, top), (2 * top, bottom), (-top, bottom),
              (top, bottom + 1)]  # fmt: skip
    return rf"${180 * top // bottom}^\circ$", (top, bottom), others


def _write_angle(value: Value) -> list[Form]:
    exact = Fraction(*value)
    sign, top, bottom = "-" if exact < 0 else "", abs(exact.numerator), exact.denominator
    size = "" if top == 1 else str(top)
    return [
        latex("over", rf"{sign}\frac{{{size}\pi}}{{{bottom}}}"),
        latex("factor", rf"{sign}\frac{{{top}}}{{{bottom}}}\pi"),
        Form("sign", f"{sign}{size}π/{bottom}", held_out=True),
        Form("word", f"{sign}{top}*pi/{bottom}", held_out=True),
        latex("unreduced", rf"{sign}\frac{{{2 * top}\pi}}{{{2 * bottom}}}", held_out=True),
        latex("slash", rf"{sign}{size}\pi/{bottom}", held_out=True),
    ]


def _exact(value: Value) -> Fraction:
    return Fraction(*value)


def _under_root(value: Value) -> Value:
    factor, root, added = value
    return factor * abs(factor) * root, added


KINDS: dict[str, tuple[Draw, Write, Callable[[Value], Any]]] = {
    "number": (_draw_number, _write_number, _exact),
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
    "angle": (_draw_angle, _write_angle, _exact),
}
"""How problems of each kind are drawn, how their values are written, and what makes two equal."""
