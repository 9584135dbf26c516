"""The public format of judge training data: chat ``messages`` with image marks, and ``images``.

The user's turn holds the image marks, then question, optional reference and responses, each after
its heading; the assistant's turn is the judgement in its tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from data_prep.sources.images import image_names
from data_prep.sources.judgement_text import PAIR_TASK, parse_judgement, write_judgement
from judging.errors import CustosError
from judging.records import read_rows
from judging.tasks import get_task
from judging.types import LabelledExample, parse_record

IMAGE_MARK = "<image>"


class Headings(BaseModel):
    """What stands before each part of the user's turn, in any case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(default="[[Question]]", min_length=1)
    reference: str = Field(default="[[Reference Answer]]", min_length=1)
    """The only part that may be missing."""
    response_a: str = Field(default="[[Response A]]", min_length=1)
    response_b: str = Field(default="[[Response B]]", min_length=1)


class _Turn(BaseModel):
    role: Literal["system", "user", "assistant"]
    content: str


class _Conversation(BaseModel):
    messages: list[_Turn]
    images: list[Any] | str | None = None


def load_conversations(
    path: Path,
    headings: Headings | None = None,
    *,
    image_folder: Path | None = None,
    bad_rows: list[str] | None = None,
) -> list[LabelledExample]:
    """Read judged pairs in the public format from a JSON, JSONL or Parquet file.

    Args:
        path: File of conversations.
        headings: How the parts of the user's turn are headed.
        image_folder: Where to save images that come as bytes.
        bad_rows: Where to report rows that cannot be read and go on; ``None`` raises on the first.

    Returns:
        Examples of task ``truthful-pair`` with critiques, named after the file and their row.
        Relative image paths are taken from the file's folder and made absolute.

    Raises:
        CustosError: If the file cannot be read; on the first bad row when ``bad_rows`` is ``None``,
            naming file and row.
    """
    examples = []
    for number, row in read_rows(path):
        where = f"{path} row {number}"
        try:
            if isinstance(row, CustosError):
                raise row
            conversation = parse_record(_Conversation, row, where)
            try:
                images = image_names(conversation.images, path.parent, image_folder)
                fields = _fields(conversation.messages, headings or Headings(), len(images))
            except CustosError as error:
                raise CustosError(f"{where}: {error}") from None
            given = {"id": f"{path.stem}-{number}", "source": path.stem, "images": images}
            examples.append(parse_record(LabelledExample, given | fields, where))
        except CustosError as error:
            if bad_rows is None:
                raise
            bad_rows.append(str(error))
    return examples


def to_conversation(example: LabelledExample) -> str:
    """One line of JSON in the public format, with the default headings.

    Raises:
        CustosError: If the example has no critique, no confidence, or a label of another task.
    """
    task, headings = get_task(PAIR_TASK), Headings()
    parts = [(headings.question, example.question)]
    if example.references:
        parts.append((headings.reference, " / ".join(example.references)))
    parts += zip((headings.response_a, headings.response_b), example.responses, strict=True)
    marks = IMAGE_MARK * len(example.images)
    turns = {
        "system": task.instruction(task.rubric(example)),
        "user": marks + "\n".join(f"{heading}\n{text}" for heading, text in parts),
        "assistant": write_judgement(example),
    }
    messages = [{"role": role, "content": content} for role, content in turns.items()]
    row = {"messages": messages, "images": list(example.images)}
    return json.dumps(row, ensure_ascii=False)


def _fields(turns: Sequence[_Turn], headings: Headings, num_images: int) -> dict[str, Any]:
    said = {turn.role: turn.content for turn in turns if turn.role != "system"}
    if [turn.role for turn in turns if turn.role != "system"] != ["user", "assistant"]:
        raise CustosError("field 'messages': expected one turn of the user, then one assistant's")
    judgement = parse_judgement(said["assistant"])
    parts = _cut(said["user"], headings, num_images)
    return {
        "task": PAIR_TASK,
        "mode": "critique",
        "question": parts["question"],
        "references": (parts["reference"],) if parts.get("reference") else (),
        "responses": (parts["response_a"], parts["response_b"]),
        "label": judgement.label,
        "critique": judgement.critique,
        "confidence": judgement.confidence,
    }


def _cut(text: str, headings: Headings, num_images: int) -> dict[str, str]:
    """Cut the user's turn at its headings.

    Raises:
        CustosError: If a heading is missing or occurs twice, or if what stands before the first is
            not one mark for each image.
    """
    spans: list[tuple[int, int, str]] = []
    for name, heading in headings.model_dump().items():
        found = list(re.finditer(re.escape(heading), text, re.IGNORECASE))
        if len(found) > 1 or (not found and name != "reference"):
            raise CustosError(f"heading '{heading}' occurs {len(found)} times, expected once")
        spans += [(*match.span(), name) for match in found]
    spans.sort()
    before = text[: spans[0][0]]
    if before.count(IMAGE_MARK) != num_images or before.replace(IMAGE_MARK, "").strip():
        raise CustosError(
            f"expected {num_images} times '{IMAGE_MARK}' before the first heading, "
            f"got '{before:.40}'"
        )
    ends = [start for start, _, _ in spans[1:]] + [len(text)]
    return {
        name: text[start:end].strip() for (_, start, name), end in zip(spans, ends, strict=True)
    }
