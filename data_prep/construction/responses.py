"""Responses of several models to a file of questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, field_validator

from clients.chat import Reply
from clients.messages import ChatItem
from data_prep.construction.model_writer import ModelWriter, Request
from data_prep.construction.run_step import ROWS
from data_prep.construction.steps.base import Row, StepRow, Text
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from judging.errors import CustosError
from judging.files.records import write_records
from judging.messages import Message
from judging.types import ReferenceMode

ITEM, ANSWERER, CUT_OFF = "item", "answerer", "cut_off"
"""Metadata of a response: id of its question, its model, whether the token limit ended it."""


class Question(StepRow):
    """A question to ask models, with all that a judge needs to grade their answers."""

    question: Text
    references: tuple[str, ...] = Field((), validation_alias=AliasChoices("references", "answer"))
    reference_mode: ReferenceMode = "all"
    choices: tuple[str, ...] = ()
    task: str = "hieval-qs"
    variant: str = "plain"
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("references", mode="before")
    @classmethod
    def _as_list(cls, references: Any) -> Any:
        return references if isinstance(references, list | tuple) else (references,)

    def item(self) -> ChatItem:
        """Compose the request: the picture, the bare question and its choices."""
        lettered = [f"({chr(65 + n)}) {choice}" for n, choice in enumerate(self.choices)]
        message = Message(
            role="user", text="\n".join([self.question, *lettered]), images=self.images
        )
        return ChatItem(id=self.id, messages=(message,))

    def answered(self, model: str, reply: Reply) -> Row:
        """Return the row that a judge or a person is to grade."""
        about = {ITEM: self.id, ANSWERER: model}
        if reply.finish_reason == "length":
            about[CUT_OFF] = "yes"
        fields = self.model_dump(
            mode="json", include=set(Question.model_fields), exclude_unset=True
        )
        return {
            **fields,
            "id": f"{self.id}/{model}",
            "response": reply.text,
            "metadata": {**self.metadata, **about},
        }


def model_folder(out: Path, model: str) -> Path:
    """Return the folder of one model within that of all."""
    return out / re.sub(r"[^\w.-]", "_", model)


def write_responses(
    questions: Sequence[Question],
    writers: Sequence[ModelWriter],
    out: Path,
    source: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """Ask every model every question that it has not answered yet, and write all responses.

    Each model's own folder gets its responses; ``out`` gets all of them in ``rows.jsonl``, question
    by question, ready for ``custos grade`` and for people.

    Args:
        questions: What to ask, with different ids.
        writers: One for each model, with a folder of its own.
        out: Folder for all responses.
        source: Description of the questions, for the manifest.
        command: Command line that can repeat this.

    Returns:
        The manifest.

    Raises:
        CustosError: As ``run_job``, if two models share a folder, or if ``rows.jsonl`` lies in one
            and did not come with a manifest.
    """
    _check_folders(writers)
    for folder in (out, *(writer.out for writer in writers)):
        check_replaceable(folder, [ROWS])
    by_model: dict[str, dict[str, Row]] = {}
    manifests: dict[str, Any] = {}
    for writer in writers:
        model = writer.server.model
        outcome = writer.ask(
            [Request(question.item(), partial(question.answered, model)) for question in questions]
        )
        counts = {"counts": {"in": len(questions), "out": len(outcome.records)}}
        answers = {row["metadata"][ITEM]: row for row in outcome.records}
        manifests[model] = writer.write(outcome, {ROWS: answers.values()}, counts)
        by_model[model] = answers
    rows = [
        answers[question.id]
        for question in questions
        for answers in by_model.values()
        if question.id in answers
    ]
    with write_with_manifest(out, source=source, command=command) as manifest:
        write_records(out / ROWS, rows)
        manifest.update(
            counts={"questions": len(questions), "responses": len(rows)},
            models={model: _spent(written) for model, written in manifests.items()},
        )
    return manifest


def _spent(manifest: Mapping[str, Any]) -> dict[str, Any]:
    names = ("decoding", "counts", "rejected", "reused", "usage", "uncounted", "cost")
    return {name: manifest[name] for name in names}


def _check_folders(writers: Sequence[ModelWriter]) -> None:
    folders = [writer.out for writer in writers]
    if len(set(folders)) < len(folders):
        names = ", ".join(writer.server.model for writer in writers)
        raise CustosError(f"--model: two of {names} are the same or would share a folder")
