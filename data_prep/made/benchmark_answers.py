"""Fact questions about pictures, and answers whose conclusion follows from SimpleVQA's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from random import Random
from typing import Literal

from data_prep.made.chart_answers import (
    MadeAnswer,
    MadeQuestion,
    MakeQuestion,
    Side,
    SimpleVQAWordings,
    Wordings,
    make_charthal,
    make_chartom,
    wordings_for,
)
from data_prep.made.words import names
from data_prep.made.words.names import Language
from data_prep.made.words.wordings import seeded_rng
from data_prep.splits.near_duplicates import question_key
from judging.tasks.simplevqa import CONCLUSIONS, CORRECT, INCORRECT, NOT_ATTEMPTED
from judging.types import LabelledExample

LANGUAGES: dict[str, Language] = {"english": "en", "chinese": "zh"}
NUM_NAMES = (2, 3)
"""How many elements a list has."""


def make_simplevqa(rng: Random, wordings: Wordings) -> tuple[MadeQuestion, list[MadeAnswer]]:
    """Return a question in a random language and four answers, at least one of each conclusion."""
    variant = rng.choice(list(LANGUAGES))
    language, words = LANGUAGES[variant], wordings.simplevqa[variant]
    kind = rng.choice(list(words.questions))
    template = rng.choice(words.questions[kind])
    question = template.format(w=names.word(rng, language))
    labels = [*CONCLUSIONS, rng.choice(CONCLUSIONS)]
    rng.shuffle(labels)
    if kind == "names":
        towns = _different(rng, lambda: names.town(rng, language), max(NUM_NAMES) + 2)
        elements = towns[: rng.choice(NUM_NAMES)]
        made = MadeQuestion(variant, question, (words.joints[0].join(elements),))
        return made, [_answer_with_list(rng, words, elements, towns[-2:], each) for each in labels]
    if kind == "number":
        number = _draw_number(rng)
        made = MadeQuestion(variant, question, (str(number),))
        return made, [_answer_with_number(rng, words, number, label) for label in labels]
    truth, wrong, other = _different(rng, lambda: _draw_name(rng, language, kind), 3)
    made = MadeQuestion(variant, question, (truth,))
    answers = []
    for label in labels:
        answers.append(_answer_with_name(rng, words, (truth, wrong, other), label, kind))
    return made, answers


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
    if kind == "person":
        given, _, surname = names.person(rng, language)
        return f"{surname}{given}" if language == "zh" else f"{given} {surname}"
    if kind == "year":
        return str(rng.randint(1510, 2019))
    draw = {"town": names.town, "title": names.title, "thing": names.thing}[kind]
    return draw(rng, language)


def _answer_with_name(
    rng: Random, words: SimpleVQAWordings, drawn: tuple[str, str, str], label: str, kind: str
) -> MadeAnswer:
    truth, wrong, other = drawn
    if label == NOT_ATTEMPTED:
        return _unattempted(rng, words, wrong)
    way = rng.random()
    if label == INCORRECT and way < 0.15:
        pair = [truth, wrong]
        rng.shuffle(pair)
        text = rng.choice(words.alternatives).format(x=pair[0], y=pair[1])
        return MadeAnswer(text, label, f"{kind}: alternatives")
    if label == INCORRECT and way < 0.25:
        return MadeAnswer(
            rng.choice(words.excluding).format(x=truth), label, f"{kind}: truth denied"
        )
    claim = _respelled(rng, truth, kind) if label == CORRECT else wrong
    return _claim(rng, words, claim, other if label == CORRECT else truth, label, kind)


def _respelled(rng: Random, name: str, kind: str) -> str:
    """Return a name as it is or, of a person, sometimes with the surname first or in capitals."""
    given, _, surname = name.partition(" ")
    if kind != "person" or not surname or rng.random() < 0.6:
        return name
    return rng.choice((f"{surname}, {given}", name.upper(), name.lower()))


def _claim(
    rng: Random, words: SimpleVQAWordings, claim: str, mentioned: str, label: str, kind: str
) -> MadeAnswer:
    """Return an answer that claims something, sometimes beside something that it rejects."""
    if rng.random() < 0.35:
        text = rng.choice(words.claiming_beside).format(x=claim, y=mentioned)
        return MadeAnswer(text, label, f"{kind}: claimed beside another")
    return MadeAnswer(rng.choice(words.claiming).format(x=claim), label, f"{kind}: claimed")


def _unattempted(rng: Random, words: SimpleVQAWordings, wrong: str) -> MadeAnswer:
    if rng.random() < 0.3:
        text = rng.choice(words.excluding).format(x=wrong)
        return MadeAnswer(text, NOT_ATTEMPTED, "wrong answer denied")
    return MadeAnswer(rng.choice(words.unattempted), NOT_ATTEMPTED, "unattempted")


def _answer_with_list(
    rng: Random, words: SimpleVQAWordings, elements: list[str], others: list[str], label: str
) -> MadeAnswer:
    joint = rng.choice(words.joints)
    kept = rng.sample(elements, len(elements) - 1)
    if label == NOT_ATTEMPTED:
        if rng.random() < 0.5:
            return _unattempted(rng, words, others[0])
        text = rng.choice(words.partly).format(part=joint.join(kept))
        return MadeAnswer(text, label, "names: partly")
    if label == CORRECT:
        listed = joint.join(rng.sample(elements, len(elements)))
        return MadeAnswer(rng.choice(words.claiming).format(x=listed), label, "names: all")
    way = rng.choice(("replaced", "one too many", "left out", "partly wrong"))
    if way == "partly wrong":
        text = rng.choice(words.partly).format(part=others[0])
        return MadeAnswer(text, label, f"names: {way}")
    changed = {
        "replaced": [*kept, others[0]],
        "one too many": [*elements, others[0]],
        "left out": kept,
    }[way]
    listed = joint.join(rng.sample(changed, len(changed)))
    return MadeAnswer(rng.choice(words.claiming).format(x=listed), label, f"names: {way}")


def _draw_number(rng: Random) -> Decimal:
    """Draw a number of four digits with up to two decimals, none of them zero at the end."""
    decimals = rng.choice((0, 1, 2))
    while True:
        number = Decimal(rng.randint(1101 * 10**decimals, 9898 * 10**decimals)).scaleb(-decimals)
        if number % 100 > 5 and str(number)[-1] != "0":
            return number


def _answer_with_number(
    rng: Random, words: SimpleVQAWordings, truth: Decimal, label: str
) -> MadeAnswer:
    decimals = max(0, -int(truth.as_tuple().exponent))
    hundreds = truth - truth % 100
    wrong = _wrong_number(rng, truth, decimals)
    if label == NOT_ATTEMPTED:
        if rng.random() < 0.5:
            return _unattempted(rng, words, wrong)
        text = rng.choice(words.rough).format(x=f"{hundreds:.0f}")
        return MadeAnswer(text, label, "number: rough")
    if label == INCORRECT:
        if rng.random() < 0.2:
            # A bare round number, which says nothing of being rough, is wrong.
            wrong = f"{hundreds:.0f}"
        return _claim(rng, words, wrong, str(truth), label, "number")
    unit = Decimal(1).scaleb(-rng.randint(0, decimals))
    claim = truth.quantize(unit, rng.choice((ROUND_DOWN, ROUND_HALF_UP)))
    return _claim(rng, words, str(claim), wrong, label, "number")


def _wrong_number(rng: Random, truth: Decimal, decimals: int) -> str:
    """Return a number of as many decimals that is at least two off, and often much more."""
    share = Decimal(rng.choice((2, 11, 40, 170, 900)))
    moved = truth + rng.choice((-1, 1)) * share
    if rng.random() < 0.2:
        moved = truth * 10
    return f"{moved:.{decimals}f}"


MAKERS: dict[str, MakeQuestion] = {
    "charthal": make_charthal,
    "simplevqa": make_simplevqa,
    "chartom-fact": make_chartom,
}
"""By task."""


def generate_benchmark_answers(
    num_rows: int,
    seed: int,
    wordings: Literal["train", "test"],
    tasks: Sequence[str] = tuple(MAKERS),
) -> Iterator[LabelledExample]:
    """Stream examples of the tasks in turn; all rows of a question come one after the other.

    Questions depend on the other arguments and their own number alone, so that a longer stream
    begins with the shorter one.

    Args:
        num_rows: How many examples to make.
        seed: Any integer.
        wordings: Wordings of questions and responses; ``test`` has none of those of ``train``.
        tasks: Names of :data:`MAKERS`.
    """
    side: Side = "training" if wordings == "train" else "held_out"
    made, number = 0, 0
    while True:
        task = tasks[number % len(tasks)]
        name = f"benchmark-answers-{wordings}-{seed}-{number}"
        rng = seeded_rng(name, task)
        question, answers = MAKERS[task](rng, wordings_for(side))
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
