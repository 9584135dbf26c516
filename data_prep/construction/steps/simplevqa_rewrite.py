"""SimpleVQA's first step: short factual questions from yes/no pairs, hints, choices and answers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import model_validator

from data_prep.construction.steps.base import Row, Step, StepReply, StepRow, Text, construction_step
from data_prep.errors import UnusableText

NOT_QUALIFIED, LEAKS, OTHER_LANGUAGE, FROM_ELSEWHERE = (
    "not qualified",
    "answer in the question",
    "language changed",
    "answer not from the question with yes",
)
"""Reasons for rejecting a row."""

_YES = frozenset({"yes", "是", "是的", "对"})
_NO = frozenset({"no", "否", "不是", "不对"})
_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")

_SHARED_RULES = """\

Keep the language of the source. The answer must not occur in the question. The answer is one \
entity, quantity or fact, in as few words as possible, and the only right one.
Set "qualified" to false, with the reason, if no such question can be made. A question is invalid \
if it does not come from the source or is no question about the picture; if it is ungrammatical; \
if it misreads the picture; if it is trivial; if it can be answered without the picture, or cannot \
be answered with it; or if its pronouns do not fit the kind of answer. An answer is invalid if it \
does not come from the source, does not fit the question, is empty or meaningless, is uncertain or \
invented, or if another answer would be as right."""

_PAIR = (
    """\
You turn two yes/no questions about a picture into one open question with a short answer. Compare \
the two: what they differ in is what the new question asks for. Its answer is taken word for word \
from the question that is answered with yes. Example: from "Does this bridge stand in Porto?" \
(yes) and "Does this bridge stand in Lisbon?" (no) comes "In which city does this bridge stand?" \
with the answer "Porto"."""
    + _SHARED_RULES
)
_HINT = (
    """\
You are given a picture, a description of it (the hint) and a question that belongs to it. Make of \
all three one question about the picture with a short answer. The answer is found in the hint or \
in the question, or follows from them. A gap to be filled in may stay a gap. If the question \
cannot be answered from them, ask for what the hint says the picture shows. Example: from the hint \
"Picture: a sundial in a garden" and "What could Ana find out with her tool?" comes "Which \
instrument stands in the picture?" with the answer "a sundial"."""
    + _SHARED_RULES
)
_CHOICES = (
    """\
You turn a multiple-choice question about a picture into an open question. The right choice is its \
answer. Add what narrows the question down until nothing but that answer is right, and do not \
mention that there were choices."""
    + _SHARED_RULES
)
_PLAIN = (
    """\
You are given a question about a picture and its answer. Make a factual question with a short \
answer of them: leave out descriptions and reasons, name exactly what is asked for (which city, \
not where; which year, not when), and change nothing that is right already."""
    + _SHARED_RULES
)


class Seed(StepRow):
    """A row of a public data set, in one of four shapes."""

    question1: Text | None = None
    answer1: Text | None = None
    question2: Text | None = None
    answer2: Text | None = None
    """Two yes/no questions, one answered with yes and one with no."""
    hint: Text | None = None
    query: Text | None = None
    """A description of the picture, and a question."""
    question: Text | None = None
    answer: Text | None = None
    choices: tuple[str, ...] = ()
    """A question with its answer, and possibly with choices."""

    @model_validator(mode="after")
    def _has_one_shape(self) -> Seed:
        pair = (self.question1, self.answer1, self.question2, self.answer2)
        shapes = (pair, (self.hint, self.query), (self.question, self.answer))
        given = [shape for shape in shapes if any(shape)]
        if len(given) != 1 or not all(given[0]):
            raise ValueError(
                "expected question1, answer1, question2 and answer2, or hint and query, "
                "or question and answer"
            )
        if given[0] is pair and {self.says_yes(1), self.says_yes(2)} != {True, False}:
            raise ValueError("of answer1 and answer2, one must be yes and one no")
        return self

    def says_yes(self, number: Literal[1, 2]) -> bool | None:
        """Return whether a question of the pair is answered with yes; ``None`` for other words."""
        answer = _normalised(self.answer1 if number == 1 else self.answer2)
        return True if answer in _YES else False if answer in _NO else None

    @property
    def texts(self) -> dict[str, str]:
        """Return its texts by heading."""
        headings = {
            "Question 1": self.question1,
            "Answer 1": self.answer1,
            "Question 2": self.question2,
            "Answer 2": self.answer2,
            "Hint": self.hint,
            "Question": self.query or self.question,
            "Choices": "; ".join(self.choices),
            "Answer": self.answer,
        }
        return {heading: text for heading, text in headings.items() if text}


class Rewritten(StepReply):
    """A question with its answer, or why there is none."""

    question: str
    answer: str
    qualified: bool
    reason: str = ""


@construction_step
class Rewrite(Step[Seed, Rewritten]):
    """Rewriting of a seed into one question with a short answer."""

    name = "simplevqa-rewrite"
    summary = "make short factual questions of yes/no pairs, hints, choices and answers"
    row_type = Seed
    reply_type = Rewritten

    def template(self, row: Seed) -> str:
        """Return the instruction for the seed's shape."""
        if row.question1:
            return _PAIR
        if row.hint:
            return _HINT
        return _CHOICES if row.choices else _PLAIN

    def fields(self, row: Seed) -> Mapping[str, str]:
        """Return the seed's texts."""
        return row.texts

    def rows(self, row: Seed, reply: Rewritten) -> Iterable[Row]:
        """Return the row with its new question; its earlier texts go to ``seed``."""
        question, answer = reply.question.strip(), reply.answer.strip()
        if not (reply.qualified and question and answer):
            raise UnusableText(NOT_QUALIFIED, reply.reason or "no question or no answer")
        if _contains(question, answer):
            raise UnusableText(LEAKS, f"'{answer}' in '{question}'")
        language = _language(" ".join(row.texts.values()))
        if _language(question) != language:
            raise UnusableText(OTHER_LANGUAGE, f"'{question}', from {language}")
        if row.question1:
            source = row.question1 if row.says_yes(1) else row.question2 or ""
            if not _contains(source, answer):
                raise UnusableText(FROM_ELSEWHERE, f"'{answer}' is not in '{source}'")
        rest = row.with_fields()
        seed = {name: rest.pop(name) for name in Seed.model_fields if name in rest}
        kept = {name: seed.pop(name) for name in StepRow.model_fields if name in seed}
        yield {
            **kept,
            **rest,
            "question": question,
            "answer": answer,
            "language": language,
            "variant": "chinese" if language == "CN" else "english",
            "seed": seed,
        }


def _normalised(text: str | None) -> str:
    """Return a text in lower case, with nothing but letters, digits and single spaces."""
    plain = unicodedata.normalize("NFKC", text or "").casefold()
    return " ".join(re.sub(r"[\W_]+", " ", plain).split())


def _contains(text: str, part: str) -> bool:
    """Return whether a text holds another; in Chinese anywhere, else as whole words."""
    text, part = _normalised(text), _normalised(part)
    if _CHINESE.search(part):
        return part in text
    return bool(part) and f" {part} " in f" {text} "


def _language(text: str) -> Literal["CN", "EN"]:
    """Return the language of a text: Chinese if it has a Chinese character."""
    return "CN" if _CHINESE.search(text) else "EN"
