"""TruthfulVQA's eight categories and 21 subcategories (appendix C), explained in our own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from data_prep.construction.steps.base import (
    WORDS,
    Level,
    Row,
    Step,
    StepReply,
    StepRow,
    Text,
    Texts,
    construction_step,
    list_in_cell,
)
from data_prep.errors import UnusableText

_WORDS = WORDS["truthfulvqa"]
TAXONOMY: Mapping[str, Mapping[str, str]] = _WORDS["taxonomy"]
"""Category to its subcategories, with what each is."""

CATEGORY_OF: Mapping[str, str] = {
    subcategory: category
    for category, subcategories in TAXONOMY.items()
    for subcategory in subcategories
}


NOT_MISLEADING, FAULTY = "not misleading", "faulty question"
"""Reasons for rejecting a row."""

Letter = Literal["A", "B", "C", "D"]
LEVELS: Mapping[int, str] = _WORDS["levels"]
"""Level to what its questions do (section 3.2)."""


class Picture(StepRow):
    """A picture."""

    images: Texts = Field(min_length=1)


class Placed(StepReply):
    """Reply that classes a picture by what misleads in it, or says that nothing does."""

    what_misleads: Text
    misleading: bool
    subcategory: str | None = None

    @field_validator("subcategory")
    @classmethod
    def _is_known(cls, subcategory: str | None) -> str | None:
        if subcategory is not None and subcategory not in CATEGORY_OF:
            raise ValueError(f"'{subcategory}' is not one of the subcategories")
        return subcategory

    @model_validator(mode="after")
    def _is_placed(self) -> Placed:
        if self.misleading and self.subcategory is None:
            raise ValueError("a misleading picture needs a subcategory")
        return self


@construction_step
class PlacePicture(Step[Picture, Placed]):
    """Category and subcategory of a picture."""

    name = "truthfulvqa-place"
    summary = "place pictures in TruthfulVQA's 8 categories and 21 subcategories"
    instruction = "\n".join(
        (
            _WORDS["place"],
            *(
                "\n".join([category, *(f"- {name}: {meaning}" for name, meaning in kinds.items())])
                for category, kinds in TAXONOMY.items()
            ),
        )
    )

    def rows(self, row: Picture, reply: Placed) -> Iterable[Row]:
        """Add the picture's categories to the row, or reject it if nothing misleads."""
        if not reply.misleading or reply.subcategory is None:
            raise UnusableText(NOT_MISLEADING, reply.what_misleads)
        yield row.with_fields(
            category=CATEGORY_OF[reply.subcategory],
            subcategory=reply.subcategory,
            what_misleads=reply.what_misleads,
        )


class PlacedPicture(Picture):
    """A picture with its categories."""

    category: str
    subcategory: str
    what_misleads: Text

    @property
    def texts(self) -> dict[str, str]:
        """Say what misleads, by heading."""
        kind = f"{self.category}, {self.subcategory}"
        return {"Kind of picture": kind, "What misleads": self.what_misleads}

    @model_validator(mode="after")
    def _fits_taxonomy(self) -> PlacedPicture:
        if CATEGORY_OF.get(self.subcategory) != self.category:
            raise ValueError(f"'{self.category}' has no subcategory '{self.subcategory}'")
        return self


class Draft(StepReply):
    """A question with four options."""

    question: Text
    options: Annotated[tuple[Text, ...], Field(min_length=4, max_length=4)]
    answer: Letter

    @field_validator("options")
    @classmethod
    def _exclude_each_other(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        if len({option.casefold() for option in options}) < len(options):
            raise ValueError("two options are the same")
        return options


class ThreeLevels(StepReply):
    """The questions of a picture."""

    level1: Draft
    level2: Draft
    level3: Draft

    @model_validator(mode="after")
    def _differ(self) -> ThreeLevels:
        questions = {draft.question.casefold() for draft in (self.level1, self.level2, self.level3)}
        if len(questions) < len(LEVELS):
            raise ValueError("two levels ask the same")
        return self


@construction_step
class WriteLevels(Step[PlacedPicture, ThreeLevels]):
    """Three questions about a picture, one for each level."""

    name = "truthfulvqa-levels"
    summary = "write a question of each level, with four options, about each picture"
    instruction = _WORDS["write"].format(
        levels="\n".join(f"- level {level}: {meaning}" for level, meaning in LEVELS.items())
    )

    def rows(self, row: PlacedPicture, reply: ThreeLevels) -> Iterable[Row]:
        """Make a row for each level, with the fields of the official file."""
        drafts = (reply.level1, reply.level2, reply.level3)
        for level, draft in zip(LEVELS, drafts, strict=True):
            name = f"{row.id}-{level}"
            yield row.with_fields(
                id=name,
                question_id=name,
                set_id=row.id,
                level=level,
                question=draft.question,
                options=list(draft.options),
                ground_truth=draft.answer,
            )


class LevelQuestion(PlacedPicture):
    """A question of one level."""

    level: Level
    question: Text
    options: Annotated[
        tuple[Text, ...], BeforeValidator(list_in_cell), Field(min_length=4, max_length=4)
    ]
    ground_truth: Letter

    @property
    def texts(self) -> dict[str, str]:
        """List the question and its options, without the answer, by heading."""
        options = (f"({letter}) {text}" for letter, text in zip("ABCD", self.options, strict=True))
        return {"Question": self.question, "Options": "\n" + "\n".join(options)}


class Inspected(StepReply):
    """The faults of a question, if there are any."""

    analysis: str
    answer_seen: Letter | None
    faults: list[
        Literal[
            "not of this level",
            "too easy or too hard",
            "options do not exclude each other",
            "no right option or several",
            "not answerable from the picture",
            "ungrammatical",
        ]
    ]


@construction_step
class Inspect(Step[LevelQuestion, Inspected]):
    """Inspection of a question by a model, before people inspect it."""

    name = "truthfulvqa-inspect"
    summary = "drop questions that are not of their level, or whose options do not work"

    def template(self, row: LevelQuestion) -> str:
        """State the criteria of the question's level."""
        return str(_WORDS["inspect"].format(level=LEVELS[row.level]))

    def rows(self, row: LevelQuestion, reply: Inspected) -> Iterable[Row]:
        """Keep the row if nothing is wrong and the model sees the same answer."""
        if reply.faults:
            raise UnusableText(FAULTY, f"{', '.join(reply.faults)}: {reply.analysis}")
        if reply.answer_seen != row.ground_truth:
            fault = f"the model sees {reply.answer_seen}, not {row.ground_truth}"
            raise UnusableText(FAULTY, f"{fault}: {reply.analysis}")
        yield row.with_fields()
