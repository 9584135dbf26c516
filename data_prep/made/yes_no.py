"""Questions whose answer is yes or no, and responses that say so in a word or a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from data_prep.made.words import names
from data_prep.made.words.wordings import (
    WordSplit,
    capital,
    draw_weighted,
    seeded_rng,
    texts,
    words_of,
)
from judging.tasks.hieval_qs import CORRECT, WRONG
from judging.types import LabelledExample

Language = Literal["en", "de", "es", "zh"]
Answer = Literal["yes", "no"]
Claim = Literal["yes", "no", "undecided"]
"""What a response says, in whatever words."""
ANSWERS: tuple[Answer, Answer] = ("yes", "no")
LANGUAGES: tuple[Language, ...] = ("en", "en", "de", "en", "en", "es", "en", "en", "zh", "en")
"""Languages of ten questions in a row."""
CLAIMS: dict[Claim, int] = {"yes": 44, "no": 44, "undecided": 12}
"""Shares of responses in percent."""
FAMILIES: dict[str, int] = {
    "bare": 10,
    "with_statement": 15,
    "statement": 30,
    "misleading": 15,
    "hedged": 10,
    "denial": 10,
    "reasoned": 10,
}
"""Shares of what decides, in percent: a word, a word beside a statement, a statement alone, words
that look like the other answer, and so on."""
ROWS_PER_QUESTION = 4
ALL_SHARE = 0.25
"""Share of questions with a single reference under ``all``."""
SUFFIX_SHARE = 0.2
"""Share of questions that ask for yes or no, or for an explanation."""


@dataclass(frozen=True)
class Asked:
    """A question with the words to answer it in."""

    language: Language
    kind: str
    question: str
    words: Mapping[str, Any]
    """Wordings of its kind, from ``words/yes_no.yaml``."""
    slots: Mapping[str, str]

    def filled(self, template: str) -> str:
        """Put names and things into a template of the kind."""
        return template.format_map(self.slots)

    def statements(self, answer: Answer, split: WordSplit, *, alone: bool) -> list[str]:
        """List templates of statements that mean an answer.

        Unless ``alone``, they can be part of a sentence.
        """
        every: list[str] = self.words[answer][split]
        return [each for each in every if alone or not each.endswith((".", "。"))]


def generate_yes_no(num_rows: int, seed: int, split: WordSplit) -> Iterator[LabelledExample]:
    """Stream examples of task ``hieval-qs`` whose references are yes or no, in four languages.

    Every four consecutive rows ask the same question: two responses, each with a reference that
    says yes and with one that says no. So no wording tells the label without the reference. Rows
    of the same question share their group, as pictures are asked about more than once.
    """
    name = f"yes-no-{split}-{seed}"
    for index in range(num_rows):
        number, place = divmod(index, ROWS_PER_QUESTION)
        rng = seeded_rng(name, number)
        asked = _draw(rng, LANGUAGES[number % len(LANGUAGES)], split)
        is_set = rng.random() < ALL_SHARE
        suffixes = words_of("yes_no")[asked.language]["suffixes"]
        suffix = rng.choice(suffixes) if rng.random() < SUFFIX_SHARE else ""
        answer = ANSWERS[place // 2]
        rng = seeded_rng(name, "reference", number, answer)
        references = _references(rng, asked, answer, is_set=is_set)
        rng = seeded_rng(name, "response", number, place % 2)
        claim = draw_weighted(rng, CLAIMS)
        wording, statement, response = _respond(rng, asked, claim, split)
        yield LabelledExample(
            id=f"{name}-{index}",
            task="hieval-qs",
            question=asked.question + suffix,
            references=references,
            reference_mode="all" if is_set else "any",
            responses=(response,),
            label=CORRECT if claim == answer else WRONG,
            metadata={
                "kind": asked.kind,
                "language": asked.language,
                "answer": answer,
                "claim": claim,
                "wording": wording,
                "statement": statement,
            },
            group=asked.question,
            source="yes-no",
        )


def _draw(rng: Random, language: Language, split: WordSplit) -> Asked:
    """Draw a kind of question, and fill its wording with invented names."""
    words = words_of("yes_no")[language]
    asked = {kind: each for kind, each in words["kinds"].items() if split in each["questions"]}
    kind = rng.choice(sorted(asked))
    slots = _slots(rng, language)
    fill = rng.choice(asked[kind]["fills"])
    slots |= {name: str(text).format_map(slots) for name, text in fill.items()}
    question = capital(rng.choice(asked[kind]["questions"][split]).format_map(slots))
    return Asked(language, kind, question, asked[kind], slots)


def _slots(rng: Random, language: Language) -> dict[str, str]:
    """Draw the names and numbers that any kind may use."""
    spelling: names.Language = "zh" if language == "zh" else "en"
    slots: dict[str, str] = {}
    for pair, draw in (
        ("wv", names.word),
        ("pq", names.full_name),
        ("tu", names.title),
        ("gf", names.thing),
        ("cd", names.town),
    ):
        for slot in pair:
            while (text := draw(rng, spelling)) in slots.values():
                pass
            slots[slot] = text
    slots["h"], slots["hs"] = rng.choice(words_of("yes_no")[language]["pronouns"])
    year, count = rng.randint(1600, 1990), rng.randint(3, 9)
    numbers = {
        "early": year - rng.randint(1, 60),
        "year": year,
        "late": year + rng.randint(1, 30),
        "few": rng.randint(2, count),
        "k": count,
        "many": count + rng.randint(1, 6),
    }
    return slots | {slot: str(number) for slot, number in numbers.items()}


def _references(rng: Random, asked: Asked, answer: Answer, *, is_set: bool) -> tuple[str, ...]:
    forms = words_of("yes_no")[asked.language]["references"][answer]
    drawn = rng.sample(forms, 1 if is_set or rng.random() < 0.7 else 2)
    # Statements of test data are for kinds of questions that training data never have.
    split: WordSplit = "train" if "train" in asked.words["questions"] else "test"
    statement = asked.filled(rng.choice(asked.statements(answer, split, alone=False)))
    return tuple(dict.fromkeys(_filled(rng, asked, each, statement, "") for each in drawn))


def _respond(rng: Random, asked: Asked, claim: Claim, split: WordSplit) -> tuple[str, str, str]:
    """Write a response that claims something, after the templates that it is made of."""
    families = words_of("yes_no")[asked.language][claim]
    family = "none" if claim == "undecided" else draw_weighted(rng, FAMILIES)
    wording = rng.choice(texts(families[family][split]))
    statement = opposite = ""
    if claim != "undecided":
        is_alone = wording in ("{o}.", "{o}。")
        statement = rng.choice(asked.statements(claim, split, alone=is_alone))
        other = ANSWERS[1 - ANSWERS.index(claim)]
        opposite = asked.filled(rng.choice(asked.statements(other, split, alone=False)))
    response = _filled(rng, asked, wording, asked.filled(statement).rstrip(".。"), opposite)
    if rng.random() < 0.1:
        response = response.rstrip(".。")
    used = statement if "{o}" in wording or "{O}" in wording else ""
    return wording, used, capital(response)


def _filled(rng: Random, asked: Asked, template: str, statement: str, opposite: str) -> str:
    """Put statements into a wording: of what it claims, of the opposite, and of the question."""
    clauses = {
        "o": statement,
        "x": opposite,
        "y": asked.filled(asked.words["y"]),
        "n": asked.filled(asked.words["n"]),
    }
    capitals = {slot.upper(): capital(text) for slot, text in clauses.items()}
    short = {
        "s": asked.filled(asked.words["s"]),
        "r": asked.filled(rng.choice(asked.words["r"])),
    }
    return template.format_map({**clauses, **capitals, **short})
