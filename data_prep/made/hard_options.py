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

from data_prep.made.hard import Item, pool_of, read_items
from data_prep.made.hard_answers import AnswerPool, is_entity, may_mean
from data_prep.made.words.wordings import WordSplit, seeded_rng, words_of
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


def generate_options(
    examples: Sequence[LabelledExample], per_question: int, seed: int, split: Split = "train"
) -> Iterator[LabelledExample]:
    """Yield responses to the questions of labelled rows, with options listed.

    Each of ``per_question`` draws gives a row for each label. Where options stand in ``choices``,
    rows that a rule of the task decides, such as a bare letter, are left out: no judge is asked for
    them. What is drawn for a question depends on the question, the rows about it, the pool of
    answers and the seed alone. Training has wordings of its own.
    """
    items = [item for item in read_items(examples) if not item.chinese]
    pool = pool_of(items)
    words: WordSplit = "train" if split == "train" else "test"
    for item in items:
        for number in range(per_question):
            rng = seeded_rng("options", seed, item.example.question, item.references, number)
            for label, example in _rows(rng, item, pool, words):
                name = f"options-{seed}-{item.example.id}-{number}-{label.lower()}"
                example = example.model_copy(update={"id": name, "label": label})
                if not (example.choices and get_task(example.task).rule(example)):
                    yield example


def _rows(
    rng: Random, item: Item, pool: AnswerPool, words: WordSplit
) -> Iterator[tuple[str, LabelledExample]]:
    judged = {label: rng.choice(texts) for label, texts in item.judged.items() if texts}
    by_people = len(judged) > 1 and rng.random() < PEOPLE_SHARE
    right = item.references if item.is_set else (rng.choice(item.references),)
    wrong = _draw_wrong(rng, item, pool, judged.get(WRONG) if by_people else None)
    if len(wrong) < 2:
        return
    unlisted = wrong.pop() if len(wrong) > 2 else ""
    listed = Listed.draw(rng, item.example.question, right, wrong, words)
    named = rng.choice(("text", "text", "letter", "both")) if listed.has_letters else "text"
    if by_people and len(item.references) > 1:
        named = "text"  # People may have accepted another reference than the one that is listed.
    references = item.references if named == "text" else right
    row = item.example.model_copy(
        update={
            "question": listed.question,
            "choices": listed.choices,
            "references": tuple(listed.named(text, named) for text in references),
            "metadata": {"kind": KIND, "claims": True, "language": "en"},
            "group": item.example.group or item.example.question,
            "source": "hard",
        }
    )
    responses = judged
    if not by_people and item.is_set:
        responses = dict(_write_sets(rng, listed))
    elif not by_people:
        responses = dict(_write_singles(rng, listed, unlisted))
    for label, response in responses.items():
        yield label, row.model_copy(update={"responses": (response,)})


def _draw_wrong(rng: Random, item: Item, pool: AnswerPool, judged: str | None) -> list[str]:
    """Draw wrong options, some of them look-alikes; a short answer that people gave comes first."""
    wrong: list[str] = []
    if judged and is_entity(answer := judged.rstrip(".")) and not may_mean(answer, item.references):
        wrong.append(answer)
    number = rng.randint(2, MAX_OPTIONS - 1)
    for _ in range(2 * number):
        answer, near = rng.choice(item.references), rng.random() < 0.4
        drawn = item.draw_wrong(rng, pool, answer, wrong, near=near)
        if drawn is not None and len(wrong) < number:
            wrong.append(drawn)
    return wrong


def _words(name: str, split: WordSplit) -> list[str]:
    """Choose wordings; those of training, or those of the other splits."""
    wordings: list[str] = words_of("hard")["options"][name][split]
    return wordings


@dataclass(frozen=True)
class Listed:
    """A question with its options."""

    right: Sequence[str]
    wrong: Sequence[str]
    words: WordSplit
    question: str
    choices: tuple[str, ...]
    """Options in the field ``choices``; empty if the question holds them."""
    options: tuple[str, ...]
    has_letters: bool
    is_upper: bool = True

    @classmethod
    def draw(
        cls,
        rng: Random,
        question: str,
        right: Sequence[str],
        wrong: Sequence[str],
        words: WordSplit,
    ) -> Listed:
        """List options in random order, in the field or in one of the layouts of a question."""
        options, drawn = [*right, *wrong], (right, wrong, words)
        rng.shuffle(options)
        if rng.random() < FIELD_SHARE:
            return cls(*drawn, question, tuple(options), tuple(options), True)
        has_letters = rng.random() < 0.67
        layout = rng.choice(_words("lettered" if has_letters else "bare", words))
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
        return cls(*drawn, text.strip(), (), tuple(options), has_letters, is_upper)

    def letter(self, option: str) -> str:
        """Look up the letter of an option as the question writes it."""
        letter = chr(ord("A") + self.options.index(option))
        return letter if self.is_upper else letter.lower()

    def named(self, text: str, way: str) -> str:
        """Name an option by its ``text``, its ``letter`` or both."""
        if way == "text":
            return text
        return self.letter(text) if way == "letter" else f"{self.letter(text)}. {text}"


def _write_singles(rng: Random, listed: Listed, unlisted: str) -> Iterator[tuple[str, str]]:
    """Yield responses that settle on the right option or on a wrong one, or on none."""
    settles = rng.random() > 0.15
    name = "by_text" if settles else "settles_on_none"
    if listed.has_letters:
        lettered = ("by_letter", "by_letter", "by_text", "by_both")
        name = rng.choice(lettered if settles else ("of_letters", "settles_on_none"))
    template = rng.choice(_words(name, listed.words))
    for label in (CORRECT, WRONG) if settles else (WRONG,):
        claim = listed.right[0] if label == CORRECT or not settles else rng.choice(listed.wrong)
        others = rng.sample([text for text in listed.options if text != claim], 2)
        if label == WRONG and settles and rng.random() < 0.5:
            others[0] = listed.right[0]  # The right option is rejected.
            others[1] = rng.choice([text for text in listed.wrong if text != claim])
        slots: dict[str, str] = {}
        for prefix, text in (("", claim), ("n", others[0]), ("o", others[1])):
            slots |= {f"{prefix}L": listed.letter(text), f"{prefix}T": text}
        if label == WRONG and settles and unlisted and "{L}" not in template:
            slots["T"] = unlisted if rng.random() < UNLISTED_SHARE else claim
        yield label, template.format(**slots)


def _write_sets(rng: Random, listed: Listed) -> Iterator[tuple[str, str]]:
    """Yield responses that pick all of a set of options, a part of it, or a wrong one as well."""
    template = rng.choice(_words("sets", listed.words))
    by_letter = listed.has_letters and rng.random() < 0.6
    comma = rng.choice((", ", " and ", "; "))
    for label in (CORRECT, PARTIAL, WRONG):
        picked = list(listed.right)
        if label == PARTIAL:
            picked = rng.sample(picked, rng.randint(1, len(picked) - 1))
        elif label == WRONG:
            picked[rng.randrange(len(picked))] = rng.choice(listed.wrong)
        names = [listed.letter(text) if by_letter else text for text in picked]
        yield label, template.format(S=comma.join(names))
