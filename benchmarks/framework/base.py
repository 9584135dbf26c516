"""What a benchmark is, and the registry of benchmarks.

Every module of this package that declares one is found by itself: adding a benchmark is adding a
file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.framework.files import Row, read_source
from data_prep.sources.images import image_names
from judging.errors import CustosError
from judging.registry import Registry
from judging.types import JudgeRequest, Verdict

PaperRow = tuple[float | str | None, ...]


@dataclass(frozen=True)
class Published:
    """One table of a paper."""

    source: str
    """``Table 2``."""
    columns: tuple[str, ...]
    rows: Mapping[str, PaperRow]
    """Row name to the figures, in the paper's own unit; ``None`` where it gives none."""


@dataclass(frozen=True)
class ItemScore:
    """How one item came out, to set two graded files beside each other."""

    id: str
    cluster: str
    """Items of a cluster (a chart, a question) are resampled together."""
    value: float | None
    """``None`` for an item without a verdict."""


class Benchmark(ABC):
    """Items to requests, verdicts to graded rows, graded rows to the paper's table."""

    name: ClassVar[str]
    summary: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    """Judge tasks it asks for; empty when rules decide everything."""
    grade_fields: ClassVar[tuple[str, ...]]
    """What ``graded`` adds of the judge's, beside the verdicts; without it an item has no score."""
    headline: ClassVar[str]
    """What ``scores`` scores."""
    full_score: ClassVar[float] = 1.0
    """What ``scores`` gives an item that is right throughout."""
    published: ClassVar[tuple[Published, ...]]
    item_id: ClassVar[str] = "id"
    """Field that names an item."""
    image_field: ClassVar[str | None] = None
    hub_split: ClassVar[str] = "test"
    keyed: ClassVar[bool] = False
    """Its own JSON files are objects from id to row, not arrays."""
    styles: ClassVar[tuple[str, ...]] = ("standard",)
    """Ways of asking a model, the paper's main one first."""
    facets: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that divide the items in a report (``a.b`` for a nested one), each with the values
    that come first; the first two fields span its map of cells."""

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """Read the official items.

        Args:
            source: File, folder or hub id.
            images: Folder for pictures that come as bytes.

        Returns:
            Rows as they are, with absolute picture paths in ``images``; bytes are left out.

        Raises:
            CustosError: If the source or a picture cannot be read.
        """
        folder, rows = read_source(source, self.hub_split)
        return [self.with_images(row, folder, images) for row in rows]

    def with_images(self, row: Row, folder: Path, images: Path | None) -> Row:
        """The row with absolute picture paths in ``images``, unless it was loaded before.

        Args:
            row: Item as its file has it.
            folder: What relative paths are relative to.
            images: Folder for pictures that come as bytes.
        """
        if self.image_field is None or ("images" in row and self.image_field != "images"):
            return row
        named = image_names(row.get(self.image_field), folder, images)
        kept = {key: value for key, value in row.items() if key != self.image_field}
        if isinstance(row.get(self.image_field), str):
            kept = row
        return {**kept, "images": list(named)}

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """What to ask a model, by the field that its answer goes into: the bare question.

        Raises:
            CustosError: If the row lacks a field.
        """
        return {"response": required_text(row, "question", self.item_id)}

    @abstractmethod
    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """What to ask a judge about an item with its response; nothing if rules decide.

        Raises:
            CustosError: If the row lacks a field or holds a bad one.
        """

    def register_rubrics(self, path: Path) -> str:
        """Register a task with a user's own rubrics in place of the benchmark's.

        Args:
            path: YAML file of rubric names and instructions.

        Returns:
            Name of the task.

        Raises:
            CustosError: If the benchmark has no rubrics to replace or the file does not fit.
        """
        raise CustosError("--rubric-file: only charthal has rubrics to replace")

    @abstractmethod
    def graded(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """The row in the benchmark's own graded shape, with the verdicts on its requests."""

    @abstractmethod
    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """The paper's table from graded rows, whether ours or the benchmark's own.

        Returns:
            Plain values ready for JSON: the table's sections, ``estimates`` (every figure again
            with ``low``, ``high`` and ``n``), and ``n, coverage, statuses, judges``.

        Raises:
            CustosError: If a row does not fit or nothing is graded.
        """

    @abstractmethod
    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """The headline score of every graded row."""

    def facets_of(self, row: Row) -> dict[str, str]:
        """Which part of each facet an item falls into; those it lacks are left out."""
        found = {name: _nested(row, name) for name in self.facets}
        return {name: str(value) for name, value in found.items() if value is not None}

    def paper_rows(self, table: Mapping[str, Any]) -> dict[str, dict[str, PaperRow]]:
        """A table's figures as rows of the published tables.

        Args:
            table: What ``table`` made; ``run`` (``seconds``, ``cost``) where it is known.

        Returns:
            Source of a published table to row name to its figures, in that table's unit.
        """
        return {}

    def people_said(self, row: Row) -> str | None:
        """Label that people gave the item, for benchmarks that measure the judge itself."""
        return None


def _nested(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row


def required_text(row: Row, field: str, item_id: str) -> str:
    """A field of a row that must hold text.

    Raises:
        CustosError: Naming the item and the field.
    """
    text = row.get(field)
    if not isinstance(text, str) or not text.strip():
        raise CustosError(f"item '{row.get(item_id, '')}': field '{field}' is missing")
    return text


BENCHMARKS = Registry[Benchmark]("benchmark", "benchmarks")
benchmark = BENCHMARKS.declare
get_benchmark = BENCHMARKS.get
benchmark_names = BENCHMARKS.names


def join_responses(items: Iterable[Row], responses: Iterable[Row], item_id: str) -> list[Row]:
    """Complete response rows, which may hold little more than an id, with their items.

    Raises:
        CustosError: If a response has no id, or an unknown or repeated one.
    """
    by_id = {str(item.get(item_id)): item for item in items}
    joined: dict[str, Row] = {}
    for number, response in enumerate(responses, 1):
        key = str(response.get(item_id))
        if key not in by_id:
            raise CustosError(f"response {number}: field '{item_id}': no item '{key}'")
        if key in joined:
            raise CustosError(f"response {number}: field '{item_id}': '{key}' occurs twice")
        joined[key] = {**by_id[key], **response}
    return list(joined.values())
