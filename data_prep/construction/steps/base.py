"""A step: a template in our own words (``words.yaml``), and the JSON that a model must reply with.

A row goes in with a step's fields, the model replies with one JSON object, and rows with further
fields come out. The schema of the object is part of what the model is told, and every reply is
checked against it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
)

from clients.chat import Reply
from clients.messages import ChatItem
from data_prep.errors import UnusableText
from data_prep.tables.cells import DEFAULT_SEPARATOR, as_list, json_value
from judging.errors import CustosError, FieldError
from judging.files.opening import shipped_yaml
from judging.files.records import decode_json
from judging.reasoning import without_thoughts
from judging.registry import Registry
from judging.types import Message, parse_record

CUT_OFF, NOT_JSON, OTHER_SCHEMA = "cut off", "not JSON", "does not fit the schema"
"""Reasons for which every step rejects replies."""

Row = dict[str, Any]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def list_in_cell(value: Any, info: ValidationInfo) -> Any:
    """Read the list that a cell of a spreadsheet holds; elsewhere a text is a list of one."""
    if isinstance(value, list | tuple):
        return value
    in_cells = bool(info.context and info.context["in_cells"])
    return as_list(value, DEFAULT_SEPARATOR if in_cells else None)


Texts = Annotated[tuple[str, ...], BeforeValidator(list_in_cell)]
"""A list of texts, which CSV files hold in one cell."""
Level = Annotated[
    Literal[1, 2, 3],
    BeforeValidator(lambda cell: int(cell) if cell in ("1", "2", "3") else cell),
]
"""A level of TruthfulVQA's questions, which CSV files hold as a text."""

WORDS = shipped_yaml(Path(__file__).parents[1] / "words.yaml")
"""What models are asked to do, and the kinds that they and people sort by."""

_ENDING = """\

Reply with one JSON object and nothing else: no code fence, no remark. It must fit this JSON schema:
{schema}"""


class StepRow(BaseModel):
    """A line of the file that goes into a step; fields that the step does not know stay in it."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    images: Texts = ()

    @property
    def texts(self) -> dict[str, str]:
        """Show the texts that a model is shown, each under its heading."""
        return {}

    def with_fields(self, **fields: Any) -> Row:
        """Copy the row as it came, with further or other fields."""
        return {**json_value(self.model_dump(exclude_unset=True)), **fields}


class StepReply(BaseModel):
    """A JSON object that a model replies with; further fields are not allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


RowT = TypeVar("RowT", bound=StepRow)
ReplyT = TypeVar("ReplyT", bound=StepReply)


class Step(Generic[RowT, ReplyT]):
    """One request to a model about each row. A subclass says what is asked and what comes of it.

    ``Step[Picture, Placed]`` takes rows of the first type and replies of the second.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """What the step does, in a few words for its help."""
    row_type: type[RowT]
    reply_type: type[ReplyT]
    instruction: ClassVar[str]
    """Text for the model, the same for all rows; a step that fills in each row has a template."""
    shows_images: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        """Read the types of rows and replies from the base."""
        super().__init_subclass__()
        [base] = cls.__orig_bases__  # type: ignore[attr-defined]  # typing sets it
        cls.row_type, cls.reply_type = get_args(base)

    def template(self, row: RowT) -> str:
        """Write what the model is told, without the row's own texts and without the schema."""
        return self.instruction

    def rows(self, row: RowT, reply: ReplyT) -> Iterable[Row]:
        """Make one row with further fields, here those of the reply, or several.

        Raise ``UnusableText`` if nothing can be made of it; the row is rejected for the reason.
        """
        yield row.with_fields(**reply.model_dump())

    def item(self, row: RowT) -> ChatItem:
        """Compose the request about a row."""
        schema = json.dumps(self.reply_type.model_json_schema(), ensure_ascii=False)
        texts = [f"{heading}: {text.strip()}" for heading, text in row.texts.items()]
        user = "\n\n".join(texts) or "The picture is above."
        messages = (
            Message(role="system", text=self.template(row) + _ENDING.format(schema=schema)),
            Message(role="user", text=user, images=row.images if self.shows_images else ()),
        )
        return ChatItem(id=row.id, messages=messages)

    def read(self, row: RowT, reply: Reply) -> list[Row]:
        """Make rows of a model's reply.

        Raise ``UnusableText`` if it is cut off, no JSON, of another schema, or the step rejects it.
        """
        return list(self.rows(row, read_reply(reply, self.reply_type)))


STEPS = Registry[Step[Any, Any]]("step", "data_prep.construction.steps")
construction_step = STEPS.declare


def read_reply(reply: Reply, reply_type: type[ReplyT]) -> ReplyT:
    """Read the JSON object of a reply; ignore thoughts before it and a code fence around it.

    Raise ``UnusableText`` if the reply is cut off, holds no JSON object, or one of another schema.
    """
    if reply.finish_reason == "length":
        raise UnusableText(CUT_OFF, "the reply ends at the token limit")
    text = without_thoughts(reply.text)
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        raise UnusableText(NOT_JSON, "there is no JSON object", mendable=True)
    try:
        return parse_record(reply_type, decode_json(text[start : end + 1]), "")
    except FieldError as error:
        raise UnusableText(OTHER_SCHEMA, str(error), mendable=True) from None
    except CustosError as error:
        raise UnusableText(NOT_JSON, str(error), mendable=True) from None
