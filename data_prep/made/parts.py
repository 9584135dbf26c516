"""Questions that ask for several things, in four languages, and responses that leave some out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Literal

from data_prep.made.words import names
from data_prep.made.words.wordings import WordSplit, capital, draw_weighted, seeded_rng, words_of
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG
from judging.types import LabelledExample, ReferenceMode

Language = Literal["en", "de", "es", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "es", "zh")
Behaviour = Literal["complete", "omission", "replaced", "added", "declined"]
"""What a response gives: all parts in some order, some and no more, all but one that is another,
all and one more, or none."""
Form = Literal["set", "whole", "alternatives", "graded"]
"""References: one a part (``all``), one that joins them (``all``), or one or two that each join
them (``any``, or ``any-partial``)."""
MODES: Mapping[Form, ReferenceMode] = {
    "set": "all",
    "whole": "all",
    "alternatives": "any",
    "graded": "any-partial",
}
FORMS: dict[Form, int] = {"set": 35, "whole": 30, "alternatives": 20, "graded": 15}
BEHAVIOURS: dict[Behaviour, int] = {"complete": 42, "omission": 36, "replaced": 16, "added": 6}
"""Shares of rows in percent. Complete answers are as many as those that lack something."""
ROWS_PER_QUESTION = 4


@dataclass(frozen=True)
class Asked:
    """A question with the parts of its answer."""

    language: Language
    kind: str
    question: str
    parts: tuple[str, ...]
    others: tuple[str, ...]
    """For each part something of its kind that is wrong."""

    @property
    def is_measure(self) -> bool:
        """Tell whether the parts are a number and its unit, which are written as one."""
        return self.kind == "weight"

    def joined(self, parts: Sequence[str], before_last: str | None = None) -> str:
        """Write parts as one text, as people say it."""
        words = words_of("parts")[self.language]
        if self.is_measure:
            return _measure(words, parts)
        between = "、" if self.language == "zh" else ", "
        return _listed(parts, between, before_last or words["spoken"])


def generate_omissions(num_rows: int, seed: int, split: WordSplit) -> Iterator[LabelledExample]:
    """Stream examples of task ``hieval-qs`` about answers of several parts, in all languages.

    Every four consecutive rows answer the same question. A response that leaves a part out is
    ``Partial``, in mode ``any`` ``Wrong``; complete ones have the same sentences, and other orders.
    """
    name = f"omissions-{split}-{seed}"
    for index in range(num_rows):
        number = index // ROWS_PER_QUESTION
        rng = seeded_rng(name, number)
        asked = _draw(rng, LANGUAGES[number % len(LANGUAGES)], split)
        forms = {each: n for each, n in FORMS.items() if each != "set" or not asked.is_measure}
        form = draw_weighted(rng, forms)
        references = _references(rng, asked, form)
        rng = seeded_rng(name, "response", index)
        may_add = MODES[form] == "all" and not asked.is_measure
        shares = {each: n for each, n in BEHAVIOURS.items() if may_add or each != "added"}
        behaviour = draw_weighted(rng, shares)
        yield _quick_score(name, index, asked, form, references, behaviour, rng, split)


def generate_languages(num_rows: int, seed: int, task: str) -> Iterator[LabelledExample]:
    """Stream test examples of a task in all languages, as many of each, four to a question.

    Wordings are those that training data never show. ``task`` is one of :data:`MAKERS`.
    """
    name = f"languages-{task}-{seed}"
    for index in range(num_rows):
        number = index // ROWS_PER_QUESTION
        asked = _draw(seeded_rng(name, number), LANGUAGES[number % len(LANGUAGES)], "test")
        yield MAKERS[task](name, index, asked, seeded_rng(name, "response", index))


def _quick_score(
    name: str,
    index: int,
    asked: Asked,
    form: Form,
    references: tuple[str, ...],
    behaviour: Behaviour,
    rng: Random,
    split: WordSplit,
) -> LabelledExample:
    lacking = WRONG if MODES[form] == "any" else PARTIAL
    label = {"complete": CORRECT, "omission": lacking}.get(behaviour, WRONG)
    row = _row(name, index, asked, behaviour, references)
    return LabelledExample(
        **row,
        task="hieval-qs",
        reference_mode=MODES[form],
        responses=(_respond(rng, asked, behaviour, split),),
        label=label,
    )


def _language_score(name: str, index: int, asked: Asked, rng: Random) -> LabelledExample:
    form: Form = "whole" if index // ROWS_PER_QUESTION // len(LANGUAGES) % 2 else "alternatives"
    shares: dict[Behaviour, int] = {"complete": 50, "replaced": 30, "omission": 20}
    references = (asked.joined(asked.parts),)
    return _quick_score(
        name, index, asked, form, references, draw_weighted(rng, shares), rng, "test"
    )


def _simple_vqa(name: str, index: int, asked: Asked, rng: Random) -> LabelledExample:
    shares: dict[Behaviour, int] = {"complete": 50, "replaced": 35, "declined": 15}
    behaviour = draw_weighted(rng, shares)
    labels = {"complete": "Correct", "replaced": "Incorrect", "declined": "Not attempted"}
    return LabelledExample(
        **_row(name, index, asked, behaviour, (asked.joined(asked.parts),)),
        task="simplevqa",
        variant="chinese" if asked.language == "zh" else "english",
        responses=(_respond(rng, asked, behaviour, "test"),),
        label=labels[behaviour],
    )


def _criterion(name: str, index: int, asked: Asked, rng: Random) -> LabelledExample:
    behaviour: Behaviour = rng.choice(("complete", "replaced"))
    return LabelledExample(
        **_row(name, index, asked, behaviour, (asked.joined(asked.parts),)),
        task="criterion",
        criteria=("gives the same answer as the reference",),
        responses=(_respond(rng, asked, behaviour, "test"),),
        label="Pass" if behaviour == "complete" else "Fail",
    )


def _pair(name: str, index: int, asked: Asked, rng: Random) -> LabelledExample:
    responses = tuple(_respond(rng, asked, each, "test") for each in ("complete", "replaced"))
    is_first = rng.random() < 0.5
    return LabelledExample(
        **_row(name, index, asked, "complete", (asked.joined(asked.parts),)),
        task="truthful-pair",
        responses=responses if is_first else responses[::-1],
        label="A" if is_first else "B",
    )


MAKERS: Mapping[str, Callable[[str, int, Asked, Random], LabelledExample]] = {
    "hieval-qs": _language_score,
    "simplevqa": _simple_vqa,
    "criterion": _criterion,
    "truthful-pair": _pair,
}
"""By task the function that makes a row in a language."""


def _row(
    name: str, index: int, asked: Asked, behaviour: Behaviour, references: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "id": f"{name}-{index}",
        "question": asked.question,
        "references": references,
        "metadata": {"kind": asked.kind, "behaviour": behaviour, "language": asked.language},
        "group": f"{name}-{index // ROWS_PER_QUESTION}",
        "source": name.partition("-")[0],
    }


def _draw(rng: Random, language: Language, split: WordSplit) -> Asked:
    words = words_of("parts")[language]
    spelling: names.Language = "zh" if language == "zh" else "en"
    kind = rng.choice(sorted(words["questions"]))
    place = names.word(rng, spelling)

    def number(slot: str, low: int, high: int) -> Callable[[], str]:
        return lambda: str(words[slot].format(n=rng.randint(low, high)))

    def one_of(table: str) -> Callable[[], str]:
        return lambda: str(rng.choice(words[table]))

    person, town = (partial(draw, rng, spelling) for draw in (names.full_name, names.town))
    makers: dict[str, tuple[Callable[[], str], ...]] = {
        "authors": (person,) * rng.randint(2, 3),
        "founding": (person, number("year", 1200, 1950)),
        "stops": (town,) * rng.randint(2, 4),
        "walk": (number("length", 3, 60), number("hours", 2, 19)),
        "reasons": (one_of("reasons"),) * rng.randint(2, 3),
        "weight": (lambda: str(rng.randint(12, 980)), one_of("units")),
    }
    drawn: list[str] = []
    for make in makers[kind] * 2:  # the second half is wrong
        while (text := make()) in drawn:
            pass
        drawn.append(text)
    parts, others = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
    name = rng.choice(words["names"]).format(w=place)
    template = rng.choice(words["questions"][kind][split])
    question = capital(template.format(s=name, w=place))
    return Asked(language, kind, question, tuple(parts), tuple(others))


def _references(rng: Random, asked: Asked, form: Form) -> tuple[str, ...]:
    if form == "set":
        return asked.parts
    whole = asked.joined(asked.parts)
    if MODES[form] == "all" or asked.is_measure or rng.random() < 0.5:
        return (whole,)
    return (whole, asked.joined(asked.parts[::-1], " & "))


def _respond(rng: Random, asked: Asked, behaviour: Behaviour, split: WordSplit) -> str:
    words = words_of("parts")[asked.language]
    if behaviour == "declined":
        return str(rng.choice(words["declined"]))
    given = list(asked.parts)
    if behaviour == "omission":
        size = rng.randint(1, len(given) - 1)
        given = given[:1] if asked.is_measure else rng.sample(given, size)
    elif behaviour == "replaced":
        changed = rng.randrange(len(given))
        given[changed] = asked.others[changed]
    elif behaviour == "added":
        given.append(rng.choice(asked.others))
    if not asked.is_measure and rng.random() < 0.6:
        rng.shuffle(given)
    between, before_last = rng.choice(words["joins"][split])
    is_list = between.startswith("\n")
    frames = [*words["frames"][split], *words["own"][asked.kind][split]]
    if asked.is_measure:
        answer = _measure(words, given)
    else:
        answer = (between if is_list else "") + _listed(given, between, before_last)
        frames = [each for each in frames if not is_list or each.endswith("{a}")]
    return capital(rng.choice(frames).format(a=answer).strip())


def _measure(words: Mapping[str, Any], parts: Sequence[str]) -> str:
    """Write a number with its unit, or alone."""
    return str(words["measure"].format(n=parts[0], u=parts[1])) if len(parts) > 1 else parts[0]


def _listed(parts: Sequence[str], between: str, before_last: str) -> str:
    *most, last = parts
    return before_last.join(filter(None, (between.join(most), last)))
