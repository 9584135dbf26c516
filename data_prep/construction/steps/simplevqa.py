"""SimpleVQA's steps after rewriting: check, atomic question, atomic fact, classification.

Between check and atomic question the paper (section 2.3) screens for difficulty, which needs
answers of several models and is no step (``data_prep.construction.screening``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from data_prep.construction.steps.base import Row, Step, StepReply, StepRow, Text, construction_step
from data_prep.errors import UnusableText
from data_prep.splits.filters import count_words

TaskCode = Literal["LS", "OIR", "TE", "PE", "LB", "TP", "QPR", "AC", "OAR"]
DomainCode = Literal["LES", "EHC", "CS", "ETA", "FTM", "NS", "AR", "CHC", "LI"]

TASKS: Mapping[str, str] = {
    "LS": "Logic & Science",
    "OIR": "Object Identification Recognition",
    "TE": "Time & Event",
    "PE": "Person & Emotion",
    "LB": "Location & Building",
    "TP": "Text Processing",
    "QPR": "Quantity & Position Relationship",
    "AC": "Art & Culture",
    "OAR": "Object Attributes Recognition",
}
DOMAINS: Mapping[str, str] = {
    "LES": "Literature, Education & Sports",
    "EHC": "Euro-American History & Culture",
    "CS": "Contemporary Society",
    "ETA": "Engineering, Technology & Application",
    "FTM": "Film, Television & Media",
    "NS": "Natural Science",
    "AR": "Art",
    "CHC": "Chinese History & Culture",
    "LI": "Life",
}
BAD_QUESTION, BAD_ANSWER = "invalid question", "invalid answer"
"""Reasons for rejecting a row."""


class Item(StepRow):
    """A question with its answer."""

    question: Text
    answer: Text

    @property
    def texts(self) -> dict[str, str]:
        """Return its texts by heading."""
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
    row_type = Item
    reply_type = Checked

    def template(self, row: Item) -> str:
        """Return the criteria."""
        return """\
You check a factual question about a picture, and its answer. Never measure the answer by what you \
would answer yourself: judge its form, not whether it is true.
First analyse the question and list its faults:
- subjective: it asks for an opinion or a feeling, not for a fact about the world.
- multiple choice: it offers choices or asks which of several statements holds.
- several questions: it asks more than one thing.
- answerable without the picture: the picture adds nothing that is needed.
- answer readable in the picture: text in the picture gives the answer away.
- ambiguous or vague: the words leave open what is meant, or how exact the answer has to be \
(where, without saying city, province or country; what it is like; might, could).
- several possible answers: more than one entity is a right answer.
- changes over time: the right answer may be another one later.
Then analyse the answer and list its faults:
- no objective entity: it is neither an entity (a name, a quantity, a direction, a known phrase or \
line of verse, a standard procedure) nor a plain statement that names one.
- not the only one: something else would answer the question as well.
- several entities: it lists more than one. The same entity in Chinese and in English is one.
- uncertain: it is hedged or does not settle the question.
Leave a list empty if there is no fault."""

    def fields(self, row: Item) -> Mapping[str, str]:
        """Return question and answer."""
        return row.texts

    def rows(self, row: Item, reply: Checked) -> Iterable[Row]:
        """Return the row as it is if there are no faults."""
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
    row_type = Item
    reply_type = Atomic
    shows_images = False

    def template(self, row: Item) -> str:
        """Return what an atomic question is."""
        return """\
You write atomic questions. A question about a picture often needs two things: seeing what the \
picture shows, and knowing something about it. The atomic question asks for the first alone: what \
or who the subject of the question is. You do not see the picture.
- Find the subject in the question and name its kind: "In which century was this temple built?" \
becomes "Which temple is in the picture?", and "Who wrote the play that this scene is from?" \
becomes "Which play is this scene from?".
- Leave out long descriptions of the context.
- A question that asks for its subject already, or a gap in a text, is atomic: repeat it.
- Phrase it as a natural question to somebody who looks at the picture.
Both questions are in English; translate the original one if it is not."""

    def fields(self, row: Item) -> Mapping[str, str]:
        """Return question and answer."""
        return row.texts

    def rows(self, row: Item, reply: Atomic) -> Iterable[Row]:
        """Return the row with its atomic question."""
        yield row.with_fields(**reply.model_dump())


class AtomicItem(Item):
    """A question with its answer and its atomic question."""

    atomic_question: Text


class Fact(StepReply):
    """The answer to an atomic question."""

    atomic_fact: Text


@construction_step
class AtomicFact(Step[AtomicItem, Fact]):
    """Candidate answer to an atomic question, for people to check."""

    name = "simplevqa-fact"
    summary = "answer each atomic question, for people to check"
    row_type = AtomicItem
    reply_type = Fact

    def template(self, row: AtomicItem) -> str:
        """Return what an atomic fact is."""
        return """\
You see a picture, a question about it with its right answer, and an atomic question, which asks \
for the subject alone. Answer the atomic question: one entity, in as few words as possible. It has \
to agree with the answer that you are given. If both questions ask the same, so is the answer."""

    def fields(self, row: AtomicItem) -> Mapping[str, str]:
        """Return both questions and the answer."""
        return {**row.texts, "Atomic question": row.atomic_question}

    def rows(self, row: AtomicItem, reply: Fact) -> Iterable[Row]:
        """Return the row with its atomic fact."""
        yield row.with_fields(**reply.model_dump())


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
    row_type = Item
    reply_type = Classified

    def template(self, row: Item) -> str:
        """Return the tasks and the domains."""
        tasks = "\n".join(f"- {code}: {name}" for code, name in TASKS.items())
        domains = "\n".join(f"- {code}: {name}" for code, name in DOMAINS.items())
        return (
            "You sort questions about pictures. Say in two or three sentences what has to be done "
            "to answer the question, and choose the task that fits best:\n"
            f"{tasks}\n"
            "Then say in a sentence which field of knowledge the question is about, and choose the "
            f"domain that fits best:\n{domains}\n"
            "Take the codes as they are, and no others."
        )

    def fields(self, row: Item) -> Mapping[str, str]:
        """Return question and answer."""
        return row.texts

    def rows(self, row: Item, reply: Classified) -> Iterable[Row]:
        """Return the row with its categories, under the official names."""
        category = {"task_category": reply.task, "subject_category": reply.domain}
        yield row.with_fields(data_id=row.id, vqa_category=category)


PUBLISHED: Mapping[str, float] = {
    "Data": 2025,
    "Chinese (CN)": 1012,
    "English (EN)": 1013,
    "LS": 0.0504, "OIR": 0.1407, "TE": 0.0998, "PE": 0.1358, "LB": 0.2153,
    "TP": 0.1007, "QPR": 0.1012, "AC": 0.0909, "OAR": 0.0652,
    "LES": 0.1348, "EHC": 0.1289, "CS": 0.1151, "ETA": 0.0795, "FTM": 0.1062,
    "NS": 0.1264, "AR": 0.0765, "CHC": 0.0968, "LI": 0.1358,
    "Max query words": 314,
    "Min query words": 5,
}  # fmt: skip
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
    """Return Table 2 of these items, under the names of ``PUBLISHED``.

    Words are runs of letters and digits; in Chinese, characters. The paper does not say how it
    counts them.

    Args:
        items: At least one.
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
