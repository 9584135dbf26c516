"""Questions with listed options: the answer by letter, by text or by both, and what only names one.

Options stand in the field ``choices`` or in the question, with letters or without. Every wording
of a response is written once with the right option and once with a wrong one. Slots:

- ``{L}``, ``{T}``: letter and text of the option that the response settles on.
- ``{nL}``, ``{nT}``, ``{oL}``, ``{oT}``: two other options, which it rejects or only mentions.

A response that settles on none, or on several, is Wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.hard.answers import AnswerPool, is_entity, may_mean
from data_prep.synthetic.hard.items import Item, read_items
from data_prep.synthetic.seeds import seeded_rng
from judging.tasks import get_task
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG
from judging.types import LabelledExample, Split

KIND = "options"
_LAYOUT = re.compile(r"((?:[^{]|\{q\})*)\{((?!q\})[^{}x]*)x([^{}]*)\}(.*)", re.DOTALL)
"""What stands before the options, before each of them, between two and after all."""
MAX_OPTIONS = 6
FIELD_SHARE = 0.45
"""Share of draws whose options stand in ``choices``; of the others a third has no letters."""
PEOPLE_SHARE = 0.3
"""Share of draws with responses that people judged, where there are any."""
UNLISTED_SHARE = 0.1
"""Share of wrong claims that are not among the options."""

Wordings = tuple[tuple[str, ...], tuple[str, ...]]

# Wordings of the first list are for training, those of the second for the other splits.
_LETTERED: Wordings = (
    (
        "{q}\n{A) x\n}", "{q}\n{(A) x\n}", "{q}\n{A. x\n}", "{q}\n{a) x\n}", "{q}\n{A: x\n}",
        "{q} {(A) x }", "{q} {A) x, }", "{q} {a. x; }", "{q} {A: x | }",
        "{q}\n\nOptions:\n{A. x\n}", "{q} Choose one: {(A) x }", "{q}\nChoices: {A) x; }",
        "Pick the right option. {q}\n{A) x\n}", "{q} Answer with the letter only.\n{A. x\n}",
        "Multiple choice: {q} {A. x }", "{A) x\n}\n{q}", "{q}\n{- A: x\n}",
    ),
    (
        "{q} [{A = x; }]", "{q}\n\nPossible answers\n{[A] x\n}", "Question: {q}\n{(a) x\n}Answer:",
        "Tick a box. {q} {A/ x / }", "{q}\n{Option A: x\n}",
    ),
)  # fmt: skip
_BARE: Wordings = (
    (
        "{q} Options: {x, }", "{q}\n{- x\n}", "{q} Choose from: {x; }", "{q} ({x / })",
        "{q}\n{* x\n}", "{q} One of these is right: {x, }",
    ),
    ("{q} Candidates are {x | }", "{q}\nPossible answers:\n{x\n}"),
)  # fmt: skip
_BY_LETTER: Wordings = (
    (
        "{L}", "({L})", "{L})", "{L}.", "**{L}**", "The answer is {L}.", "I choose {L}.",
        "Option {L} is correct.", "Answer: {L}", "My answer is ({L}).", "It must be {L}.",
        "Not {nL}. It is {L}.", "{nL} and {oL} are wrong, so {L}.", "Final answer: {L}",
        "I first thought of {nL}, but the answer is {L}.", "Letter {L}", "{L} is right.",
        "I would rule out {nL}, which leaves {L}.", "{L}, since {nL} does not fit.",
    ),
    (
        "My pick is {L}", "I am going for {L}, not {nL}.", "Choice {L}", "Let me say {L}.",
        "Having dismissed {nL} and {oL}, I end up with {L}.",
    ),
)  # fmt: skip
_BY_TEXT: Wordings = (
    (
        "{T}", "{T}.", "It is {T}.", "The answer is {T}.", "I choose {T}.", "**{T}**",
        "{T} is the correct option.", "It must be {T}, not {nT}.", "Answer: {T}",
        "{nT} does not fit, so it is {T}.", "Of these, {T} is right.",
        "{nT} and {oT} can be ruled out. What is left is {T}.", "I'd say {T}.",
        "The right one is {T}.", "At first I leaned towards {nT}. It is {T}, though.",
        "Looking at all options, only {T} makes sense.", "{T}, because {nT} is something else.",
    ),
    (
        "My pick is {T}", "I am going for {T} and not for {nT}.", "Put me down for {T}.",
        "Neither {nT} nor {oT} works here; {T} does.", "Among the candidates it has to be {T}.",
    ),
)  # fmt: skip
_BY_BOTH: Wordings = (
    (
        "{L}. {T}", "({L}) {T}", "{L}) {T}", "{L}: {T}", "The answer is {L}. {T}.",
        "Option {L}, {T}, is correct.", "The correct option is ({L}) {T}.", "{T} ({L})",
        "{nL}) {nT} is wrong. {oL}) {oT} is wrong too. That leaves {L}) {T}.",
        "{L}. {T}\n\nExplanation: ({nL}) {nT} and ({oL}) {oT} do not match the question.",
        "Not ({nL}) {nT}, but ({L}) {T}.",
    ),
    (
        "My pick is {L}, that is {T}.", "{T}, listed as {L}.",
        "I dismissed {nL} ({nT}) first and settled on {L} ({T}).",
    ),
)  # fmt: skip
_SETTLES_ON_NONE: Wordings = (
    (
        "{T} or {nT}", "Either {nT} or {T}.", "It could be {T}, {nT} or {oT}.",
        "None of these options is right.", "I cannot decide between {T} and {nT}.",
        "{T}, {nT}, {oT}", "All of the above.", "One of the listed options.",
        "The options are {nT}, {T} and {oT}.", "Not {T}.", "{T} is wrong.", "I don't know.",
    ),
    ("{T} / {nT}", "Any of {nT}, {oT} and {T} might do.", "No option convinces me, not even {T}."),
)  # fmt: skip
_OF_LETTERS: Wordings = (
    (
        "{L} or {nL}", "{L} and {nL}", "Either ({nL}) or ({L}).", "{L}, {nL}, {oL}",
        "I cannot decide between {L} and {nL}.", "Not {L}.", "{L} is wrong.", "{L}. {nT}",
        "The answer is {nL} or {L}.", "({L}) {nT}",
    ),
    ("{L}/{nL}", "{nL}, unless it is {L}.", "Anything but {L}."),
)  # fmt: skip
_SETS: Wordings = (
    ("{S}", "The answers are {S}.", "I choose {S}.", "{S} are right.", "Correct: {S}"),
    ("My picks: {S}", "It has to be {S}."),
)


@dataclass(frozen=True)
class Listed:
    """A question with its options."""

    question: str
    choices: tuple[str, ...]
    """Options in the field ``choices``; empty if the question holds them."""
    options: tuple[str, ...]
    has_letters: bool
    is_upper: bool = True

    def letter(self, option: str) -> str:
        """Return the letter of an option as the question writes it."""
        letter = chr(ord("A") + self.options.index(option))
        return letter if self.is_upper else letter.lower()


def generate_options(
    examples: Sequence[LabelledExample], per_question: int, seed: int, split: Split = "train"
) -> Iterator[LabelledExample]:
    """Yield responses to the questions of labelled rows, with options listed.

    Where options stand in ``choices``, rows that a rule of the task decides, such as a bare letter,
    are left out: no judge is asked for them. What is drawn for a question depends on the question,
    the rows about it, the pool of answers and the seed alone.

    Args:
        examples: Rows of task ``hieval-qs``; what cannot be used is passed over.
        per_question: Draws for each question, of one row for each label.
        seed: Any integer.
        split: The split that the rows are for; training has wordings of its own.
    """
    items = [item for item in read_items(examples) if not item.chinese]
    pool = AnswerPool.of((i.example.question, answer) for i in items for answer in i.references)
    for item in items:
        for number in range(per_question):
            rng = seeded_rng("options", seed, item.example.question, item.references, number)
            for label, example in _rows(rng, item, pool, split != "train"):
                name = f"options-{seed}-{item.example.id}-{number}-{label.lower()}"
                example = example.model_copy(update={"id": name, "label": label})
                if not (example.choices and get_task(example.task).rule(example)):
                    yield example


def _rows(
    rng: Random, item: Item, pool: AnswerPool, held_out: bool
) -> Iterator[tuple[str, LabelledExample]]:
    judged = {label: rng.choice(texts) for label, texts in item.judged.items() if texts}
    by_people = len(judged) > 1 and rng.random() < PEOPLE_SHARE
    right = item.references if item.is_set else (rng.choice(item.references),)
    wrong = _draw_wrong(rng, item, pool, judged.get(WRONG) if by_people else None)
    if len(wrong) < 2:
        return
    unlisted = wrong.pop() if len(wrong) > 2 else ""
    listed = _listed(rng, item.example.question, [*right, *wrong], held_out)
    named = rng.choice(("text", "text", "letter", "both")) if listed.has_letters else "text"
    if by_people and len(item.references) > 1:
        named = "text"  # People may have accepted another reference than the one that is listed.
    references = item.references if named == "text" else right
    row = item.example.model_copy(
        update={
            "question": listed.question,
            "choices": listed.choices,
            "references": tuple(_named(listed, text, named) for text in references),
            "metadata": {"kind": KIND, "claims": True, "language": "en"},
            "group": item.example.group or item.example.question,
            "source": "hard",
        }
    )
    if by_people:
        for label, response in judged.items():
            yield label, row.model_copy(update={"responses": (response,)})
        return
    if item.is_set:
        yield from _set_rows(rng, row, listed, right, wrong, held_out)
        return
    settles = rng.random() > 0.15
    wordings = _wordings(rng, listed, settles)[held_out]
    template = rng.choice(wordings)
    for label in (CORRECT, WRONG) if settles else (WRONG,):
        claim = right[0] if label == CORRECT or not settles else rng.choice(wrong)
        others = [text for text in listed.options if text != claim]
        others = rng.sample(others, 2)
        if label == WRONG and settles and rng.random() < 0.5:
            others[0] = right[0]  # The right option is rejected.
            others[1] = rng.choice([text for text in wrong if text != claim])
        slots = _slots(listed, claim, others)
        if label == WRONG and settles and unlisted and "{L}" not in template:
            slots["T"] = unlisted if rng.random() < UNLISTED_SHARE else slots["T"]
        yield label, row.model_copy(update={"responses": (template.format(**slots),)})


def _draw_wrong(rng: Random, item: Item, pool: AnswerPool, judged: str | None) -> list[str]:
    """Draw wrong options, look-alikes among them, and a short wrong answer of people first."""
    wrong: list[str] = []
    if judged and is_entity(answer := judged.rstrip(".")) and not may_mean(answer, item.references):
        wrong.append(answer)
    number = rng.randint(2, MAX_OPTIONS - 1)
    for _ in range(2 * number):
        drawn = pool.draw_wrong(
            rng,
            rng.choice(item.references),
            (*item.references, *wrong),
            item.example.question,
            near=rng.random() < 0.4,
            tolerance=item.example.variant == "tolerance",
        )
        if drawn is not None and len(wrong) < number:
            wrong.append(drawn)
    return wrong


def _listed(rng: Random, question: str, options: list[str], held_out: bool) -> Listed:
    rng.shuffle(options)
    if rng.random() < FIELD_SHARE:
        return Listed(question, tuple(options), tuple(options), True)
    has_letters = rng.random() < 0.67
    layout = rng.choice((_LETTERED if has_letters else _BARE)[held_out])
    match = _LAYOUT.fullmatch(layout)
    assert match, layout
    before, mark, separator, after = match.groups()
    is_upper = "a" not in mark
    letters = "ABCDEFGH" if is_upper else "abcdefgh"
    written = (
        mark.replace(letters[0], letter) + option
        for letter, option in zip(letters, options, strict=False)
    )
    text = f"{before}{separator.join(written)}{after}".replace("{q}", question)
    return Listed(text.strip(), (), tuple(options), has_letters, is_upper)


def _named(listed: Listed, text: str, named: str) -> str:
    """Return how the reference names an option: by its text, its letter or both."""
    if named == "text":
        return text
    letter = listed.letter(text)
    return letter if named == "letter" else f"{letter}. {text}"


def _wordings(rng: Random, listed: Listed, settles: bool) -> Wordings:
    if not listed.has_letters:
        return _BY_TEXT if settles else _SETTLES_ON_NONE
    if settles:
        return rng.choice((_BY_LETTER, _BY_LETTER, _BY_TEXT, _BY_BOTH))
    return rng.choice((_OF_LETTERS, _SETTLES_ON_NONE))


def _slots(listed: Listed, claim: str, others: Sequence[str]) -> dict[str, str]:
    texts = {"": claim, "n": others[0], "o": others[1]}
    letters = {f"{name}L": listed.letter(text) for name, text in texts.items()}
    return letters | {f"{name}T": text for name, text in texts.items()}


def _set_rows(
    rng: Random,
    row: LabelledExample,
    listed: Listed,
    right: Sequence[str],
    wrong: Sequence[str],
    held_out: bool,
) -> Iterator[tuple[str, LabelledExample]]:
    """Yield responses that pick all of a set of options, a part of it, or a wrong one as well."""
    template = rng.choice(_SETS[held_out])
    by_letter = listed.has_letters and rng.random() < 0.6
    comma = rng.choice((", ", " and ", "; "))
    for label in (CORRECT, PARTIAL, WRONG):
        picked = list(right)
        if label == PARTIAL:
            picked = rng.sample(picked, rng.randint(1, len(picked) - 1))
        elif label == WRONG:
            picked[rng.randrange(len(picked))] = rng.choice(wrong)
        names = [listed.letter(text) if by_letter else text for text in picked]
        yield label, row.model_copy(update={"responses": (template.format(S=comma.join(names)),)})
