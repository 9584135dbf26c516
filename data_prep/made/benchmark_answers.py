"""Labelled responses to made questions of three benchmarks, and those of SimpleVQA themselves.

SimpleVQA asks for facts about pictures; its rules give the conclusion on an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from random import Random
from typing import Any

from data_prep.made.chart_answers import (
    Made,
    MadeAnswer,
    MadeQuestion,
    Wordings,
    make_charthal,
    make_chartom,
)
from data_prep.made.words import names
from data_prep.made.words.names import Language
from data_prep.made.words.wordings import WordSplit, seeded_rng, texts, words_of
from data_prep.splits.near_duplicates import question_key
from judging.tasks.simplevqa import CONCLUSIONS, INCORRECT, NOT_ATTEMPTED
from judging.types import LabelledExample

LANGUAGES: dict[str, Language] = {"english": "en", "chinese": "zh"}
NUM_NAMES = (2, 3)
"""How many elements a list has."""


def make_simplevqa(rng: Random, wordings: Wordings) -> Made:
    """Draw a question in a random language and four answers, at least one of each conclusion."""
    variant = rng.choice(list(LANGUAGES))
    language, words = LANGUAGES[variant], wordings["simplevqa"][variant]
    kind = rng.choice(list(words["questions"]))
    question = rng.choice(words["questions"][kind]).format(w=names.word(rng, language))
    labels = [*CONCLUSIONS, rng.choice(CONCLUSIONS)]
    rng.shuffle(labels)
    writer = _FactWriter(rng, words, kind)
    if kind == "names":
        towns = _different(rng, lambda: names.town(rng, language), max(NUM_NAMES) + 2)
        elements = towns[: rng.choice(NUM_NAMES)]
        truth = words["joints"][0].join(elements)
        answers = [writer.with_list(elements, towns[-2], label) for label in labels]
    elif kind == "number":
        number = _draw_number(rng)
        truth = str(number)
        answers = [writer.with_number(number, label) for label in labels]
    else:
        truth, wrong, other = _different(rng, lambda: _draw_name(rng, language, kind), 3)
        answers = [writer.with_name(truth, wrong, other, label) for label in labels]
    return MadeQuestion(variant, question, (truth,)), answers


def _different(rng: Random, draw: Callable[[], str], count: int) -> list[str]:
    """Draw texts of which none holds another."""
    drawn: list[str] = []
    while len(drawn) < count:
        text = draw()
        if not any(text in other or other in text for other in drawn):
            drawn.append(text)
    rng.shuffle(drawn)
    return drawn


def _draw_name(rng: Random, language: Language, kind: str) -> str:
    if kind == "year":
        return str(rng.randint(1510, 2019))
    draw = {
        "person": names.full_name,
        "town": names.town,
        "title": names.title,
        "thing": names.thing,
    }[kind]
    return draw(rng, language)


def _draw_number(rng: Random) -> Decimal:
    """Draw a number of four digits with up to two decimals, none of them zero at the end."""
    decimals = rng.choice((0, 1, 2))
    while True:
        number = Decimal(rng.randint(1101 * 10**decimals, 9898 * 10**decimals)).scaleb(-decimals)
        if number % 100 > 5 and str(number)[-1] != "0":
            return number


class _FactWriter:
    """Writes answers to a question, in the words of one language."""

    def __init__(self, rng: Random, words: Wordings, kind: str) -> None:
        self.rng, self.words, self.kind = rng, words, kind

    def write(self, table: str, label: str, way: str, **slots: str) -> MadeAnswer:
        """Fill one of a table's templates."""
        text = self.rng.choice(self.words[table]).format(**slots)
        return MadeAnswer(text, label, f"{self.kind}: {way}")

    def claim(self, claim: str, mentioned: str, label: str) -> MadeAnswer:
        """Claim something, sometimes beside something that is rejected."""
        if self.rng.random() < 0.35:
            return self.write(
                "claiming_beside", label, "claimed beside another", x=claim, y=mentioned
            )
        return self.write("claiming", label, "claimed", x=claim)

    def unattempted(self, wrong: str) -> MadeAnswer:
        """Claim nothing, or deny what is wrong."""
        if self.rng.random() < 0.3:
            text = self.rng.choice(self.words["excluding"]).format(x=wrong)
            return MadeAnswer(text, NOT_ATTEMPTED, "wrong answer denied")
        return MadeAnswer(self.rng.choice(self.words["unattempted"]), NOT_ATTEMPTED, "unattempted")

    def with_name(self, truth: str, wrong: str, other: str, label: str) -> MadeAnswer:
        """Answer a question for a name or a year."""
        if label == NOT_ATTEMPTED:
            return self.unattempted(wrong)
        way = self.rng.random()
        if label == INCORRECT and way < 0.15:
            pair = [truth, wrong]
            self.rng.shuffle(pair)
            return self.write("alternatives", label, "alternatives", x=pair[0], y=pair[1])
        if label == INCORRECT and way < 0.25:
            return self.write("excluding", label, "truth denied", x=truth)
        if label == INCORRECT:
            return self.claim(wrong, truth, label)
        given, _, surname = truth.partition(" ")
        if self.kind == "person" and surname and self.rng.random() >= 0.6:
            truth = self.rng.choice((f"{surname}, {given}", truth.upper(), truth.lower()))
        return self.claim(truth, other, label)

    def with_list(self, elements: list[str], other: str, label: str) -> MadeAnswer:
        """Answer a question for several towns."""
        rng = self.rng
        joint = rng.choice(self.words["joints"])
        kept = rng.sample(elements, len(elements) - 1)
        if label == NOT_ATTEMPTED:
            if rng.random() < 0.5:
                return self.unattempted(other)
            return self.write("partly", label, "partly", part=joint.join(kept))
        way, listed = "all", elements
        if label == INCORRECT:
            way = rng.choice(("replaced", "one too many", "left out", "partly wrong"))
            if way == "partly wrong":
                return self.write("partly", label, way, part=other)
            listed = {
                "replaced": [*kept, other],
                "one too many": [*elements, other],
                "left out": kept,
            }[way]
        text = joint.join(rng.sample(listed, len(listed)))
        return self.write("claiming", label, way, x=text)

    def with_number(self, truth: Decimal, label: str) -> MadeAnswer:
        """Answer a question for a number, by the rule of cutting and rounding."""
        rng = self.rng
        decimals = max(0, -int(truth.as_tuple().exponent))
        hundreds = f"{truth - truth % 100:.0f}"
        # At least two off, and often much more.
        share = Decimal(rng.choice((2, 11, 40, 170, 900)))
        moved = truth + rng.choice((-1, 1)) * share
        if rng.random() < 0.2:
            moved = truth * 10
        wrong = f"{moved:.{decimals}f}"
        if label == NOT_ATTEMPTED:
            if rng.random() < 0.5:
                return self.unattempted(wrong)
            return self.write("rough", label, "rough", x=hundreds)
        if label == INCORRECT:
            # A bare round number, which says nothing of being rough, is wrong.
            return self.claim(hundreds if rng.random() < 0.2 else wrong, str(truth), label)
        unit = Decimal(1).scaleb(-rng.randint(0, decimals))
        claim = truth.quantize(unit, rng.choice((ROUND_DOWN, ROUND_HALF_UP)))
        return self.claim(str(claim), wrong, label)


@cache
def wordings_for(split: WordSplit) -> dict[str, Any]:
    """Collect all wordings of a split."""
    return _read(words_of("benchmark_answers")[split])


def _read(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _read(value) if isinstance(value, dict) else texts(value)
        for name, value in table.items()
    }


MAKERS: dict[str, Callable[[Random, Wordings], Made]] = {
    "charthal": make_charthal,
    "simplevqa": make_simplevqa,
    "chartom-fact": make_chartom,
}
"""By task."""


def generate_benchmark_answers(
    num_rows: int,
    seed: int,
    wordings: WordSplit,
    tasks: Sequence[str] = tuple(MAKERS),
) -> Iterator[LabelledExample]:
    """Stream examples of the tasks in turn; all rows of a question come one after the other.

    ``test`` has none of the wordings of ``train``.
    """
    table = wordings_for(wordings)
    made, number = 0, 0
    while True:
        task = tasks[number % len(tasks)]
        name = f"benchmark-answers-{wordings}-{seed}-{number}"
        question, answers = MAKERS[task](seeded_rng(name, task), table)
        for position, answer in enumerate(dict.fromkeys(answers)):
            if made == num_rows:
                return
            made += 1
            yield LabelledExample(
                id=f"{name}-{position}",
                task=task,
                variant=question.variant,
                question=question.question,
                choices=question.choices,
                references=question.references,
                responses=(answer.response,),
                label=answer.label,
                metadata={"kind": answer.kind},
                group=question_key(question.question),
                source="benchmark-answers",
            )
        number += 1
