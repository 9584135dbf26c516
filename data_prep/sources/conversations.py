"""The public format of TruthfulJudge's training data: ``messages`` and ``images``.

The user's turn holds the image marks, then question, optional reference and responses, each after
its heading. The assistant's turn is the judgement in its tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from data_prep.errors import UnusableText
from data_prep.tables.cells import image_names
from judging.errors import CustosError, FieldError
from judging.files.records import read_rows
from judging.tasks import get_task
from judging.tasks.base import last_between
from judging.types import LabelledExample, parse_record

PAIR_TASK = "truthful-pair"
IMAGE_MARK = "<image>"
UNPARSABLE = "unparsable"

MISREAD, MISREASONED, OFF_TOPIC, MADE_UP, PADDED = (
    "visual misinterpretation",
    "wrong physical reasoning",
    "off-topic or vague",
    "speculative or fictional",
    "distracting additions",
)

MEANINGS: Mapping[str, str] = {
    MISREAD: "something in the image is misread, overlooked or made up",
    MISREASONED: "space, size, light, motion or cause is reasoned about wrongly",
    OFF_TOPIC: "the question is passed by, or nothing is said that could be checked",
    MADE_UP: "a guess or an invention is told as if it were known",
    PADDED: "what nobody asked for draws the reader away from the answer",
}
"""The five tags of untruthfulness, which people mark responses with."""


class Judgement(NamedTuple):
    """The parts of a judgement on a pair."""

    critique: str
    label: str
    confidence: float


class Headings(BaseModel, frozen=True, extra="forbid"):
    """Headings of the parts of the user's turn, in upper or lower case."""

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

    Examples of task ``truthful-pair`` with critiques are named after the file and their row. Image
    paths become absolute; images that come as bytes are saved in ``image_folder``. Errors are those
    of :func:`read_records`.
    """
    headings = headings or Headings()
    examples = []
    for number, row in read_rows(path):
        location = f"{path} row {number}"
        try:
            fields = {"id": f"{path.stem}-{number}", "source": path.stem}
            fields |= _fields(row, location, headings, path.parent, image_folder)
            examples.append(parse_record(LabelledExample, fields, location))
        except CustosError as error:
            if bad_rows is None:
                raise
            bad_rows.append(str(error))
    return examples


def with_references(
    examples: Sequence[LabelledExample], reference: Literal["shown", "hidden", "both"]
) -> list[LabelledExample]:
    """Show or hide reference answers, or give each example with and then without.

    A judge that was trained without them reads pairs without one as the paper's own does (F.2).
    """
    kept = []
    for example in examples:
        if reference != "hidden" or not example.references:
            kept.append(example)
        if reference != "shown" and example.references:
            update = {"id": f"{example.id}-hidden", "references": ()}
            kept.append(example.model_copy(update=update))
    return kept


def to_conversation(example: LabelledExample) -> dict[str, Any]:
    """Write an example as a row in the public format, with the default headings.

    Raise ``CustosError`` if the example has no critique, no confidence, or a label of another task.
    """
    task, headings = get_task(PAIR_TASK), Headings()
    tags = task.critique
    assert tags
    if not example.critique or example.confidence is None:
        raise CustosError(f"row '{example.id}': needs a critique and a confidence")
    parts = [(headings.question, example.question)]
    if example.references:
        parts.append((headings.reference, " / ".join(example.references)))
    parts += zip((headings.response_a, headings.response_b), example.responses, strict=True)
    marks = IMAGE_MARK * len(example.images)
    turns = {
        "system": task.instruction(task.rubric(example)),
        "user": marks + "\n".join(f"{heading}\n{text}" for heading, text in parts),
        "assistant": f"{tags.opening}{example.critique}{tags.closing}\n"
        f"{tags.label_opening}{task.target(example)}{tags.label_closing}\n"
        f"{tags.confidence_opening}{example.confidence:.2f}{tags.confidence_closing}",
    }
    messages = [{"role": role, "content": content} for role, content in turns.items()]
    return {"messages": messages, "images": list(example.images)}


def _fields(
    row: Any, location: str, headings: Headings, folder: Path, image_folder: Path | None
) -> dict[str, Any]:
    """Read the fields of an example from a row; errors name the row and the field or heading."""
    if isinstance(row, CustosError):
        raise row
    conversation = parse_record(_Conversation, row, location)
    try:
        images = image_names(conversation.images, folder, image_folder)
    except CustosError as error:
        raise FieldError("images", str(error), location) from None
    try:
        turns = [turn for turn in conversation.messages if turn.role != "system"]
        if [turn.role for turn in turns] != ["user", "assistant"]:
            raise CustosError("expected one turn of the user, then one assistant's")
        judgement = parse_judgement(turns[1].content)
        parts = _split_at_headings(turns[0].content, headings, len(images))
    except CustosError as error:
        raise FieldError("messages", str(error), location) from None
    return {
        "images": images,
        "task": PAIR_TASK,
        "mode": "critique",
        "question": parts["question"],
        "references": (parts["reference"],) if parts.get("reference") else (),
        "responses": (parts["response_a"], parts["response_b"]),
        **judgement._asdict(),
    }


def _split_at_headings(text: str, headings: Headings, num_images: int) -> dict[str, str]:
    """Split the user's turn at its headings; return the text of each part.

    The text before the first heading must be one mark for each image.
    """
    spans: list[tuple[int, int, str]] = []
    for name, heading in headings.model_dump().items():
        matches = list(re.finditer(re.escape(heading), text, re.IGNORECASE))
        if len(matches) > 1 or (not matches and name != "reference"):
            raise CustosError(f"heading '{heading}' occurs {len(matches)} times, expected once")
        spans += [(*match.span(), name) for match in matches]
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


def parse_judgement(text: str) -> Judgement:
    """Read a judgement; where tags occur more than once, the last ones count.

    Raise ``UnusableText`` if a part is missing or is not what it should be.
    """
    task = get_task(PAIR_TASK)
    tags = task.critique
    assert tags
    critique = last_between(text, tags.opening, tags.closing)
    label = task.parse(text, "plain")
    stated = last_between(text, tags.confidence_opening, tags.confidence_closing)
    for name, part in (("critique", critique), ("label", label), ("confidence", stated)):
        if part is None:
            raise UnusableText(UNPARSABLE, f"no {name} in its tags")
    assert critique is not None and label is not None and stated is not None
    if not critique:
        raise UnusableText("empty critique", "nothing between the tags of the critique")
    try:
        confidence = float(stated)
    except ValueError:
        raise UnusableText(UNPARSABLE, f"confidence '{stated:.40}' is no number") from None
    if not 0 <= confidence <= 1:
        raise UnusableText("confidence out of range", f"confidence {stated:.40}")
    return Judgement(critique, label, confidence)
