"""Answers and what is easily mistaken for them: look-alikes and other questions' answers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Literal

from data_prep.made.behaviours import EDGE, TOLERANCE
from data_prep.made.elements import MONTHS
from data_prep.made.words.wordings import words_of
from judging.files.questions import normalise_question
from judging.rules.quantities import MOST_DIGITS, is_near_any
from judging.tasks.hieval_qs import CORRECT

Shape = Literal["year", "date", "number", "name", "phrase", "sentence"]
MAX_ANSWER_WORDS = 8
"""Answers of more words are sentences; no other question's sentence resembles them."""
CLEARANCE = 0.08
"""A wrong number is off by more than this share, where 5 % are allowed."""

_YEAR = re.compile(r"(?:1[0-9]|20)\d\d")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_NO_ENTITIES = frozenset({"yes", "no", "true", "false", "none", "nothing", "never", "always"})


def shape_of(answer: str) -> Shape:
    """Classify what kind of thing an answer looks like."""
    words = answer.split()
    if len(words) > MAX_ANSWER_WORDS or (_CJK.search(answer) and len(answer) > 24):
        return "sentence"
    if _YEAR.fullmatch(answer):
        return "year"
    if any(month in answer for month in MONTHS) and _NUMBER.search(answer):
        return "date"
    if _NUMBER.search(answer):
        return "number"
    capitals = sum(word[:1].isupper() for word in words)
    return "name" if capitals and capitals * 2 >= len(words) else "phrase"


def is_entity(answer: str) -> bool:
    """Tell whether an answer names something, so that another thing can take its place."""
    folded = normalise_question(answer)
    return (
        shape_of(answer) != "sentence"
        and folded not in _NO_ENTITIES
        and any(character.isalnum() for character in answer)
    )


def is_chinese(text: str) -> bool:
    """Tell whether a text is written in Chinese or Japanese."""
    return _CJK.search(text) is not None


def may_mean(answer: str, references: Sequence[str]) -> bool:
    """Tell whether an answer could pass for a reference: its words hold theirs, or are held."""
    words = set(_words(answer))
    for reference in references:
        wanted = set(_words(reference))
        if not words or not wanted or words <= wanted or wanted <= words:
            return True
    return False


def _is_close(answer: str, references: Sequence[str]) -> bool:
    """Tell whether a number of the answer is within ``CLEARANCE`` of one of the references'."""
    values = [float(n.replace(",", "")) for n in _NUMBER.findall(answer)]
    wanted = sorted(float(n.replace(",", "")) for text in references for n in _NUMBER.findall(text))
    return is_near_any(values, wanted, CLEARANCE)


def _words(text: str) -> list[str]:
    folded = normalise_question(text)
    return list(folded.replace(" ", "")) if is_chinese(text) else folded.split()


Key = tuple[str, Shape, int]
"""What a question asks for (``who``, ``when``; empty: anything), shape and length of an answer."""
_ASKED = frozenset(("who", "when", "where", "how", "what", "which"))


@dataclass(frozen=True)
class AnswerPool:
    """Answers of many questions, by what was asked, their shape and their length."""

    answers: dict[Key, tuple[str, ...]]
    _alike: dict[Key, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)
    """Answers of each kind, once they are collected."""

    @classmethod
    def of(cls, answered: Iterable[tuple[str, str]]) -> AnswerPool:
        """Pool ``(question, answer)`` pairs; each answer counts once."""
        pool: dict[Key, set[str]] = {}
        for question, answer in answered:
            if is_entity(answer):
                for asked in ("", asked_word(question)):
                    pool.setdefault((asked, *_kind(answer)), set()).add(answer)
        return cls({key: tuple(sorted(members)) for key, members in pool.items()})

    def draw_wrong(
        self,
        rng: Random,
        answer: str,
        references: Sequence[str],
        question: str,
        *,
        near: bool,
        tolerance: bool = False,
    ) -> str | None:
        """Draw an answer that is wrong but of the same kind; ``None`` if there is none.

        It takes the place of the right ``answer`` and resembles none of the references by its
        words. What the question names itself is no plausible answer. ``near`` prefers look-alikes:
        a shifted number, a name that shares a part. ``tolerance`` keeps numbers clear of the share
        by which they may be off.
        """
        spoken = f" {normalise_question(question)} "
        for _ in range(20):
            wrong = look_alike(rng, answer, self) if near or rng.random() < 0.3 else None
            if wrong is None:
                wrong = self.same_kind(rng, answer, question)
            if wrong is None:
                return None
            if f" {normalise_question(wrong)} " in spoken or may_mean(wrong, references):
                continue
            if not (tolerance and _is_close(wrong, references)):
                return wrong
        return None

    def same_kind(self, rng: Random, answer: str, question: str = "") -> str | None:
        """Draw an answer of the same shape and about the same length; ``None`` if there is none.

        Answers to questions that begin with the same word are preferred.
        """
        key = (asked_word(question), *_kind(answer))
        if key not in self._alike:
            self._alike[key] = self._of_kind(*key)
        return rng.choice(alike) if (alike := self._alike[key]) else None

    def _of_kind(self, asked_first: str, shape: Shape, length: int) -> tuple[str, ...]:
        """Collect answers of a kind, to questions of any first word where too few have this one."""
        for distance, asked in product(range(4), dict.fromkeys((asked_first, ""))):
            near = tuple(
                other
                for size in sorted({length - distance, length + distance})
                for other in self.answers.get((asked, shape, size), ())
            )
            if len(near) >= 5 or (near and distance == 3):
                return near
        return ()


def asked_word(question: str) -> str:
    """Find the question word that a question begins with; empty: it begins otherwise."""
    words = normalise_question(question).split()[:1]
    return words[0] if words and words[0] in _ASKED else ""


def _kind(answer: str) -> tuple[Shape, int]:
    return shape_of(answer), len(answer) if is_chinese(answer) else len(answer.split())


def look_alike(rng: Random, answer: str, pool: AnswerPool) -> str | None:
    """Draw something that looks like an answer but names another thing; ``None`` if none does."""
    shape = shape_of(answer)
    if shape in ("year", "number", "date"):
        return _shifted(rng, answer, shape)
    words = answer.split()
    if shape == "name" and len(words) >= 2 and not is_chinese(answer):
        other = pool.same_kind(rng, answer)
        if other is None or len(other.split()) != len(words):
            return None
        changed = rng.choice((0, len(words) - 1))
        return " ".join([*words[:changed], other.split()[changed], *words[changed + 1 :]])
    return None


def _shifted(rng: Random, answer: str, shape: Shape) -> str | None:
    """Change one of the numbers of an answer, or its month; ``None`` if it has none to change."""
    months = [month for month in MONTHS if month in answer]
    if shape == "date" and months and rng.random() < 0.4:
        return answer.replace(months[0], rng.choice([m for m in MONTHS if m not in months]))
    numbers = [match for match in _NUMBER.finditer(answer) if len(match[0]) <= MOST_DIGITS]
    if not numbers:
        return None
    match = rng.choice(numbers)
    changed = _other_number(rng, match.group())
    return answer[: match.start()] + changed + answer[match.end() :]


def _other_number(rng: Random, text: str) -> str:
    """Draw another number of about the same size, written in the same way."""
    plain = text.replace(",", "")
    decimals = len(plain.partition(".")[2])
    value = float(plain)
    if _YEAR.fullmatch(text):
        other = value + rng.choice((-10, -4, -3, -2, -1, 1, 2, 3, 5, 10))
    elif value <= 31 and not decimals:
        other = value + rng.choice((-3, -2, -1, 1, 2, 3))
        other = other if other > 0 else value + 4
    else:
        other = value * (1 + rng.choice((-1, 1)) * rng.uniform(0.15, 0.6))
    other = round(other, decimals)
    other = value + 1 if other == value else other
    return f"{other:,.{decimals}f}" if "," in text else f"{other:.{decimals}f}"


_SOUNDS = (
    ("ph", "f"), ("ck", "k"), ("th", "t"), ("qu", "kw"), ("ie", "ei"), ("ei", "ie"), ("ou", "u"),
    ("ae", "e"), ("y", "i"), ("c", "k"), ("k", "c"), ("z", "s"), ("v", "w"), ("a", "e"), ("e", "a"),
    ("i", "e"), ("o", "u"), ("u", "o"),
)  # fmt: skip
"""What is written for a sound, and what is written for it by mistake."""
_LONG_WORD = re.compile(r"[^\W\d_]{6,}")


def misspell(rng: Random, answer: str) -> str:
    """Write an answer as one misspells it: one mistake in each of its words of six letters or more.

    First letters stay; accents and capitals are sometimes left out.
    """
    written = _LONG_WORD.sub(lambda word: _mistyped(rng, word[0]), answer)
    if rng.random() < 0.3:
        folded = unicodedata.normalize("NFKD", written)
        written = "".join(c for c in folded if not unicodedata.combining(c))
    return written.lower() if rng.random() < 0.4 else written


def _mistyped(rng: Random, word: str) -> str:
    """Swap two letters, drop or double one, or write a sound in another way."""
    at, way = rng.randrange(1, len(word) - 1), rng.random()
    sounds = [pair for pair in _SOUNDS if pair[0] in word[1:]]
    if way < 0.5 and sounds:
        wanted, written = rng.choice(sounds)
        return word[0] + word[1:].replace(wanted, written, 1)
    if way < 0.65:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if way < 0.85:
        return word[:at] + word[at + 1 :]
    return word[: at + 1] + word[at:]


_NAME = re.compile(
    r"(?!.*\b[A-Z]{2,}\b)(?:(?:[A-Z][\w'’-]+|(?:[A-Z]\.)+) ){1,3}(?!Jr$)[A-Z][\w'’-]+(?<!['’]s)"
)


def name_forms(name: str) -> list[str]:
    """List other ways to write the name of a person of two to four words; none for other names.

    Nor for names with a title or a number, whose parts name others: Sir Edward Henry, James I.
    """
    others = words_of("hard")["other_names"]
    words = name.casefold().split()
    is_other = words[0] in others["first"].split() or words[-1] in others["last"].split()
    if is_other or _NAME.fullmatch(name) is None:
        return []
    first, *middle, last = name.split()
    initials = [f"{word[0]}." for word in (first, *middle)]
    forms = [last, f"{last}, {' '.join((first, *middle))}", f"{initials[0]} {last}"]
    if middle:
        between = " ".join(initials[1:])
        forms += [f"{first} {last}", f"{first} {between} {last}", f"{''.join(initials)} {last}"]
    return [form for form in dict.fromkeys(forms) if form != name]


def may_name(form: str, names: Iterable[str]) -> bool:
    """Tell whether a form of a name may be one of names: they have each word or initial of it."""
    parts = re.findall(r"[^\W_]+", form.casefold())
    spelt = (re.findall(r"[^\W_]+", name.casefold()) for name in names)
    return any(all(any(w.startswith(part) for w in words) for part in parts) for words in spelt)


_QUANTITY = re.compile(
    r"(?P<before>(?:about |approximately |around |roughly )?[$€£]?)"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<unit> ?%|(?: ?[^\W\d_]++){0,3})"
)
SMALLEST_WHOLE = 20
"""Whole numbers below this have no other whole number within 5 %; most count something."""
OTHER_UNITS = {
    "km": "m", "kg": "g", "m": "cm", "min": "hours", "L": "mL", "nm": "mm", "%": "per mille",
    "percent": "per mille", "miles": "yards", "feet": "inches", "million": "thousand",
    "billion": "million", "metres": "kilometres", "kilometres": "metres", "dollars": "cents",
    "years": "months", "days": "weeks", "hours": "minutes", "minutes": "seconds",
}  # fmt: skip
"""A unit to put in place of another; the number then means something else."""


@dataclass(frozen=True)
class Quantity:
    """A number as a reference writes it."""

    before: str
    value: float
    decimals: int
    unit: str
    """What follows the number, with the space before it."""


def read_quantity(references: Sequence[str]) -> Quantity | None:
    """Read the number that all references give; ``None`` for years, small counts and others."""
    read = [_read(reference) for reference in references]
    first = read[0] if read else None
    if first is None or any(q is None or q.value != first.value for q in read):
        return None
    is_small = not first.decimals and first.value < SMALLEST_WHOLE
    return None if is_small or not first.value else first


def _read(reference: str) -> Quantity | None:
    match = _QUANTITY.fullmatch(reference.strip())
    is_too_long = match is not None and len(match["number"]) > MOST_DIGITS
    if match is None or is_too_long or _YEAR.fullmatch(reference.strip()):
        return None
    words = match["unit"].split()
    if any(word != word.lower() and word not in OTHER_UNITS for word in words):
        return None  # a name, such as that of a film
    if words and not match["unit"].startswith(" ") and words[0] not in OTHER_UNITS:
        return None  # an ordinal, or a year in Chinese
    plain = match["number"].replace(",", "")
    decimals = len(plain.partition(".")[2])
    value = float(plain)
    return Quantity(match["before"], value, decimals, match["unit"])


def quantity_slots(
    rng: Random, quantity: Quantity, label: str, *, tolerance: bool
) -> dict[str, str]:
    """Fill the slots of a frame: a number that earns the label, and a range around it.

    With the tolerance a number is right up to 5 % off; without it only the number itself is.
    """
    unit = quantity.unit
    if label == CORRECT:
        share = rng.uniform(0.001, TOLERANCE - EDGE) if tolerance and rng.random() < 0.7 else 0.0
        value = _moved(rng, quantity, share, (0.0, TOLERANCE - EDGE))
    elif tolerance:
        value, unit = _wrong(rng, quantity, (TOLERANCE + EDGE, 0.6))
    else:
        value, unit = _wrong(rng, quantity, (0.0, 0.6))
    around = (rng.uniform(0.6, 0.9), rng.uniform(1.1, 1.5))
    low, high = (round(quantity.value * share, quantity.decimals + 1) for share in around)
    if not quantity.decimals:
        low, high = round(low), round(high)
    return {
        "yes": _write(rng, quantity, value, unit),
        "low": _write(rng, quantity, low, quantity.unit),
        "high": _write(rng, quantity, high, quantity.unit),
    }


def _wrong(rng: Random, quantity: Quantity, bounds: tuple[float, float]) -> tuple[float, str]:
    """Draw a number that is off by a share within bounds, or by its unit or its size."""
    unit = quantity.unit.strip()
    way = rng.random()
    if way < 0.15 and unit in OTHER_UNITS:
        return quantity.value, quantity.unit.replace(unit, OTHER_UNITS[unit])
    if way < 0.35:
        return quantity.value * rng.choice((0.01, 0.1, 10, 100)), quantity.unit
    low, high = bounds
    near = max(low, 0.004) + 0.04 + rng.random() * 0.05
    share = near if rng.random() < 0.6 else rng.uniform(near, high)
    if low == 0 and rng.random() < 0.6:  # what the tolerance would forgive
        share = rng.uniform(0.004, TOLERANCE)
    value = _moved(rng, quantity, share, bounds)
    # What rounds back to the right number becomes ten times as large.
    return 10 * value if value == quantity.value else value, quantity.unit


def _moved(rng: Random, quantity: Quantity, share: float, bounds: tuple[float, float]) -> float:
    """Move a number by about a share; the move stays within bounds after rounding, or is exact."""
    low, high = bounds
    for decimals in (quantity.decimals, quantity.decimals + 1, quantity.decimals + 2):
        value = round(quantity.value * (1 + share * rng.choice((-1, 1))), decimals)
        off = abs(value - quantity.value) / quantity.value
        if low < off < high or off == share == 0:
            return value
    return quantity.value


def _write(rng: Random, quantity: Quantity, value: float, unit: str) -> str:
    """Write a number with its unit: with or without separators of thousands, or in words for %."""
    decimals = max(quantity.decimals, 2 if value < SMALLEST_WHOLE else 1)
    plain = f"{value:.{decimals + 2}f}".rstrip("0").rstrip(".")
    if value >= 1000 and rng.random() < 0.5:
        whole, _, rest = plain.partition(".")
        plain = f"{int(whole):,}" + (f".{rest}" if rest else "")
    if unit.strip() == "%" and rng.random() < 0.4:
        unit = " percent"
    return f"{quantity.before}{plain}{unit}"
