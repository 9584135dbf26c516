"""The base class of benchmarks, and their registry.

A benchmark is declared in a module or folder of the package ``benchmarks``, by the decorator
``benchmark``. Adding one is adding one file or folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.framework.files import Row, error_location, item_name, read_source
from benchmarks.framework.tables import Estimate, stored_verdicts
from clients.messages import Decoding
from data_prep.tables.cells import image_names
from judging.errors import CustosError, FieldError
from judging.registry import Registry
from judging.tasks.reworded import register_rubrics
from judging.types import JudgeRequest, Verdict

Figure = float | str | None
PaperRow = tuple[Figure, ...]
MeasuredRow = tuple[Estimate | Figure, ...]
"""A row of ours under the columns of a published table: estimates in that table's unit."""


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper."""

    source: str
    """Number or title, such as ``Table 2``."""
    columns: tuple[str, ...]
    rows: Mapping[str, PaperRow]
    """Row name to the figures, in the paper's unit; ``None`` where it gives none."""
    ranked_by: str | None = None
    """Column whose highest figure comes first in reports; otherwise rows are in the paper's order,
    ours on top."""
    corrected: str | None = None
    """Column of the headline score, which people's labels correct."""
    radar: tuple[str, ...] = ()
    """Columns that are the axes of a radar picture."""
    note: str = ""
    """Explanation of what the table holds and what its columns mean, in whole sentences."""


@dataclass(frozen=True)
class ItemScore:
    """Score of one graded item under the headline metric."""

    id: str
    cluster: str
    """Items of a cluster (a chart, a question) are resampled together."""
    value: float | None
    """``None`` for an item without a verdict."""


class Benchmark(ABC):
    """Turns items into requests, verdicts into graded rows, and those into the paper's table."""

    name: ClassVar[str]
    summary: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    """Judge tasks of its requests that rules may leave to a judge; empty if they leave none."""
    rubrics_of: ClassVar[str | None] = None
    """Task whose rubrics a user may word anew, to repeat a published grader; ``None``: of none."""
    grade_fields: ClassVar[tuple[str, ...]]
    """Fields that ``graded_row`` adds beside the verdicts.

    They are removed before people's labels are joined: no judge's grade is read as people's.
    """
    people_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of items that say what people did. Where people correct a score, only their own count.
    """
    headline: ClassVar[str]
    """Name of the metric that ``scores`` returns."""
    full_score: ClassVar[float] = 1.0
    """Score of an item that is right throughout."""
    published: ClassVar[tuple[PublishedTable, ...]]
    example: ClassVar[tuple[Row, ...]]
    """A few items of our own with responses, in the shape that is graded."""
    item_id: ClassVar[str] = "id"
    """Field that names an item."""
    image_field: ClassVar[str | None] = None
    hub_split: ClassVar[str] = "test"
    keyed: ClassVar[bool] = False
    """True if its JSON files are objects from id to row, false if they are arrays."""
    styles: ClassVar[tuple[str, ...]] = ("standard",)
    """Ways of asking a model, the paper's main one first."""
    decodings: ClassVar[Mapping[str, Decoding]] = {}
    """Settings with which the paper sampled answers, by name."""
    facets: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that divide the items in a report (``a.b`` for a nested one), each with the values
    that come first. The first two are the rows and columns of the report's map of scores."""

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """Read the official items.

        Args:
            source: File, folder or hub id.
            images: Folder for pictures that come as bytes.

        Returns:
            The rows, with absolute picture paths or addresses in ``images``. Pictures that come as
            bytes are saved in the folder, and their paths stand in place of the bytes.

        Raises:
            CustosError: If the source or a picture cannot be read; the message names the source.
        """
        folder, rows = read_source(source, self.hub_split)
        loaded = []
        for row in rows:
            with error_location(Path(source)):
                loaded.append(self.with_images(row, folder, images))
        return loaded

    def with_images(self, row: Row, folder: Path, images: Path | None) -> Row:
        """Return the row with absolute picture paths in ``images``.

        A row that has ``images`` already is returned as it is.

        Args:
            row: Item as its file has it.
            folder: Folder that relative paths are relative to.
            images: Folder for pictures that come as bytes.

        Raises:
            FieldError: If the picture field holds no picture.
        """
        if self.image_field is None or ("images" in row and self.image_field != "images"):
            return row
        try:
            names = image_names(row.get(self.image_field), folder, images)
        except CustosError as error:
            raise FieldError(self.image_field, str(error), self.location(row)) from None
        is_path = isinstance(row.get(self.image_field), str)
        others = {key: value for key, value in row.items() if key != self.image_field}
        return {**(row if is_path else others), "images": list(names)}

    def location(self, row: Row) -> str:
        """Return how error messages name an item: ``item 'x'``, or nothing without an id."""
        return item_name(row.get(self.item_id))

    def required_text(self, row: Row, field: str) -> str:
        """Return a field of a row that must hold text.

        Raises:
            FieldError: If it holds none.
        """
        text = row.get(field)
        if not isinstance(text, str) or not text.strip():
            raise FieldError(field, "is missing", self.location(row))
        return text

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """Return the texts to send to a model, by the field that its answer goes into.

        By default this is the bare question.

        Args:
            row: Item.
            style: One of ``styles``.

        Raises:
            FieldError: If the row lacks a field.
        """
        return {"response": self.required_text(row, "question")}

    @abstractmethod
    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Return the requests that grade an item with its response; none if rules decide.

        Raises:
            FieldError: If the row lacks a field or holds a bad one.
        """

    def register_rubrics(self, path: Path) -> str:
        """Register a task with a user's rubrics in place of the benchmark's.

        Args:
            path: YAML file of rubric names and instructions.

        Returns:
            Name of the task.

        Raises:
            CustosError: If the benchmark has no rubrics to replace or the file does not fit.
        """
        if self.rubrics_of is None:
            known = " and ".join(each.name for each in BENCHMARKS if each.rubrics_of)
            raise CustosError(f"--rubric-file: only {known} have rubrics to replace")
        return register_rubrics(self.rubrics_of, path)

    @abstractmethod
    def graded_row(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Return the row in the benchmark's own graded shape, with the verdicts on its requests."""

    @abstractmethod
    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the paper's table from graded rows, whether ours or the benchmark's own.

        Returns:
            Plain values ready for JSON: the table's sections, ``intervals`` (every figure again
            with ``low``, ``high`` and ``n``), and ``n, coverage, statuses, judges``.

        Raises:
            CustosError: If a row does not fit or nothing is graded.
        """

    @abstractmethod
    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """Return the headline score of every graded row."""

    def other_scores(self, rows: Sequence[Row]) -> dict[str, list[ItemScore]]:
        """Return the scores of measures beside the headline, from 0 to 1, by name."""
        return {}

    def scores_of(self, measure: str | None, rows: Sequence[Row]) -> list[ItemScore]:
        """Return the scores of a measure; ``None`` stands for the headline.

        Raises:
            CustosError: If the benchmark has no measure of that name, or a row does not fit.
        """
        if measure in (None, self.headline):
            return self.scores(rows)
        others = self.other_scores(rows)
        if measure not in others:
            known = ", ".join((self.headline, *others))
            raise CustosError(f"measure '{measure}' of '{self.name}' is not one of {known}")
        return others[measure]

    def facets_of(self, row: Row) -> dict[str, str]:
        """Return the item's part in each facet; facets that it lacks are left out."""
        parts = {name: _nested(row, name) for name in self.facets}
        return {name: str(value) for name, value in parts.items() if value is not None}

    def paper_rows(self, table: Mapping[str, Any], name: str) -> dict[str, dict[str, MeasuredRow]]:
        """Return a table's figures as rows of the published tables.

        Args:
            table: Result of ``table``, with ``run`` (``seconds``, ``cost``) where it is known.
            name: Name of the model whose responses were graded, for its row.

        Returns:
            A dict from a published table's ``source`` to a dict from row name to figures.
        """
        return {}

    def calibration(self, table: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return accuracy by stated confidence, ``None`` where responses state none.

        Args:
            table: Result of ``table``.

        Returns:
            ``ece_equal_width`` (an estimate) and ``by_confidence``: band such as ``0.8-0.9`` to an
            estimate of ``accuracy``.
        """
        return None

    def graded_files(self, folder: Path) -> dict[str, Path]:
        """Return the graded file of every model in a folder of the benchmark's own code.

        Args:
            folder: Folder as the benchmark's scripts leave it.

        Raises:
            CustosError: If there is none.
        """
        raise CustosError(f"{folder}: a folder; {self.name} has no folders of results")

    def by_model(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        """Return graded rows by the model that they name; one without a name by default."""
        return {"": list(rows)}

    def human_label(self, row: Row) -> str | None:
        """Return people's label of an item, for benchmarks that measure the judge itself."""
        return None

    def graded_label(self, row: Row) -> str | None:
        """Return the label of a graded item that a judge's and people's grades are compared by.

        By default this is ``1`` for a full headline score and ``0`` for none.
        """
        [score] = self.scores([row])
        return None if score.value is None else f"{score.value / self.full_score:g}"

    def compared_verdict(self, row: Row) -> Verdict | None:
        """Return the verdict whose label is ``graded_label``; ``None`` where a rule decided."""
        verdicts = list(stored_verdicts(row).values())
        return verdicts[0] if len(verdicts) == 1 else None


def _nested(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row


BENCHMARKS = Registry[Benchmark]("benchmark", "benchmarks")
benchmark = BENCHMARKS.declare
get_benchmark = BENCHMARKS.get
benchmark_names = BENCHMARKS.names


def join_responses(items: Iterable[Row], responses: Iterable[Row], item_id: str) -> list[Row]:
    """Complete response rows, which may hold little more than an id, with their items.

    Args:
        items: Official items.
        responses: Rows with the ids of items.
        item_id: Field that holds the id.

    Raises:
        FieldError: If a response has no id, or an unknown or repeated one.
    """
    by_id = {str(item.get(item_id)): item for item in items}
    joined: dict[str, Row] = {}
    for number, response in enumerate(responses, 1):
        if item_id not in response:
            raise FieldError(item_id, "is missing", f"response {number}")
        key = str(response[item_id])
        if key not in by_id:
            raise FieldError(item_id, f"no item '{key}'", f"response {number}")
        if key in joined:
            raise FieldError(item_id, f"'{key}' occurs twice", f"response {number}")
        joined[key] = {**by_id[key], **response}
    return list(joined.values())
