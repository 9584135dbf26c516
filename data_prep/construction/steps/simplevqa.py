"""SimpleVQA's steps: rewrite, check, atomic question and fact, classification; and its Table 2.

Between check and atomic question the paper (section 2.3) screens for difficulty, which needs
answers of several models and is no step (``data_prep.construction.responses``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from data_prep.construction.steps.base import (
    WORDS,
    Row,
    Step,
    StepReply,
    StepRow,
    Text,
    Texts,
    construction_step,
)
from data_prep.errors import UnusableText
from data_prep.splits.filters import count_words

TaskCode = Literal["LS", "OIR", "TE", "PE", "LB", "TP", "QPR", "AC", "OAR"]
DomainCode = Literal["LES", "EHC", "CS", "ETA", "FTM", "NS", "AR", "CHC", "LI"]

_WORDS = WORDS["simplevqa"]
TASKS: Mapping[str, str] = _WORDS["tasks"]
DOMAINS: Mapping[str, str] = _WORDS["domains"]
NOT_QUALIFIED, LEAKS = "not qualified", "answer in the question"
OTHER_LANGUAGE, FROM_ELSEWHERE = "language changed", "answer not from the question with yes"
"""Reasons for rejecting a seed."""

_YES = frozenset({"yes", "是", "是的", "对"})
_NO = frozenset({"no", "否", "不是", "不对"})
_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")


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
    choices: Texts = ()
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
        """Tell whether a question of the pair is answered with yes; ``None`` for other words."""
        answer = _normalised(self.answer1 if number == 1 else self.answer2)
        return True if answer in _YES else False if answer in _NO else None

    @property
    def texts(self) -> dict[str, str]:
        """List its texts by heading."""
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

    def template(self, row: Seed) -> str:
        """Choose the instruction for the seed's shape."""
        shape = "pair" if row.question1 else "hint" if row.hint else "plain"
        return f"{_WORDS['choices' if row.choices else shape]}\n{_WORDS['rules']}"

    def rows(self, row: Seed, reply: Rewritten) -> Iterable[Row]:
        """Put the new question into the row; its earlier texts go to ``seed``."""
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
    """Fold a text to lower case, with nothing but letters, digits and single spaces."""
    plain = unicodedata.normalize("NFKC", text or "").casefold()
    return " ".join(re.sub(r"[\W_]+", " ", plain).split())


def _contains(text: str, part: str) -> bool:
    """Tell whether a text holds another; in Chinese anywhere, else as whole words."""
    text, part = _normalised(text), _normalised(part)
    if _CHINESE.search(part):
        return part in text
    return bool(part) and f" {part} " in f" {text} "


def _language(text: str) -> Literal["CN", "EN"]:
    """Tell the language of a text: Chinese if it has a Chinese character."""
    return "CN" if _CHINESE.search(text) else "EN"


BAD_QUESTION, BAD_ANSWER = "invalid question", "invalid answer"
"""Reasons for rejecting a row."""


class Item(StepRow):
    """A question with its answer."""

    question: Text
    answer: Text

    @property
    def texts(self) -> dict[str, str]:
        """List its texts by heading."""
        return {"Question": self.question, "Answer": self.answer}


class Checked(StepReply):
    """Reply that lists the faults of a question and of its answer."""

    question_analysis: str
    question_faults: list[
        Literal[
            "subjective",
            "multiple choice",
            "several questions",
            "answerable without the picture",
            "answer readable in the picture",
            "ambiguous or vague",
            "several possible answers",
            "changes over time",
        ]
    ]
    answer_analysis: str
    answer_faults: list[
        Literal["no objective entity", "not the only one", "several entities", "uncertain"]
    ]


@construction_step
class Check(Step[Item, Checked]):
    """Check of a question and its answer against SimpleVQA's criteria (section 2.2)."""

    name = "simplevqa-check"
    summary = "drop questions and answers that break SimpleVQA's criteria"
    instruction = _WORDS["check"]

    def rows(self, row: Item, reply: Checked) -> Iterable[Row]:
        """Keep the row as it is if there are no faults."""
        for reason, faults, analysis in (
            (BAD_QUESTION, reply.question_faults, reply.question_analysis),
            (BAD_ANSWER, reply.answer_faults, reply.answer_analysis),
        ):
            if faults:
                raise UnusableText(reason, f"{', '.join(faults)}: {analysis}")
        yield row.with_fields()


class Atomic(StepReply):
    """The question in English, and the question for its subject alone."""

    original_question: Text
    atomic_question: Text


@construction_step
class AtomicQuestion(Step[Item, Atomic]):
    """Question for the subject of a question, from its text alone."""

    name = "simplevqa-atomic"
    summary = "ask for the subject of each question alone"
    shows_images = False
    instruction = _WORDS["atomic"]


class AtomicItem(Item):
    """A question with its answer and its atomic question."""

    atomic_question: Text

    @property
    def texts(self) -> dict[str, str]:
        """List both questions and the answer by heading."""
        return {**super().texts, "Atomic question": self.atomic_question}


class Fact(StepReply):
    """The answer to an atomic question."""

    atomic_fact: Text


@construction_step
class AtomicFact(Step[AtomicItem, Fact]):
    """Candidate answer to an atomic question, for people to check."""

    name = "simplevqa-fact"
    summary = "answer each atomic question, for people to check"
    instruction = _WORDS["fact"]


def _listed(names: Mapping[str, str]) -> str:
    return "\n".join(f"- {code}: {name}" for code, name in names.items())


class Classified(StepReply):
    """A task and a domain, each with the reason."""

    task_analysis: str
    task: TaskCode
    domain_analysis: str
    domain: DomainCode


@construction_step
class Classify(Step[Item, Classified]):
    """Classification into the paper's nine tasks and nine domains."""

    name = "simplevqa-classify"
    summary = "sort questions into SimpleVQA's nine tasks and nine domains"
    instruction = _WORDS["classify"].format(tasks=_listed(TASKS), domains=_listed(DOMAINS))

    def rows(self, row: Item, reply: Classified) -> Iterable[Row]:
        """Add task and domain to the row, under the official names."""
        category = {"task_category": reply.task, "subject_category": reply.domain}
        yield row.with_fields(data_id=row.id, vqa_category=category)


PUBLISHED: Mapping[str, float] = _WORDS["published"]
"""Table 2: numbers, and shares of the tasks and domains."""


class Category(BaseModel):
    """Task and domain of an item, as the official files name them."""

    model_config = ConfigDict(frozen=True)

    task_category: TaskCode
    subject_category: DomainCode


class ClassifiedItem(StepRow):
    """An item after step ``simplevqa-classify``."""

    question: str
    language: Literal["CN", "EN"]
    vqa_category: Category


def describe(items: Sequence[ClassifiedItem]) -> dict[str, float]:
    """Compute Table 2 of these items, one at least, under the names of ``PUBLISHED``.

    Words are runs of letters and digits; in Chinese, characters. The paper does not say how it
    counts them.
    """
    languages = Counter(item.language for item in items)
    tasks: Counter[str] = Counter(item.vqa_category.task_category for item in items)
    domains: Counter[str] = Counter(item.vqa_category.subject_category for item in items)
    words = [count_words(item.question) for item in items]
    return {
        "Data": len(items),
        "Chinese (CN)": languages["CN"],
        "English (EN)": languages["EN"],
        **{code: tasks[code] / len(items) for code in TASKS},
        **{code: domains[code] / len(items) for code in DOMAINS},
        "Max query words": max(words),
        "Min query words": min(words),
    }
