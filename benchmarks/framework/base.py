"""The base class of benchmarks, and their registry.

A benchmark is declared in a module or folder of the package ``benchmarks``, by the decorator
``benchmark``. Adding one is adding one file or folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.framework.estimates import Estimate
from benchmarks.framework.files import (
    Row,
    error_location,
    item_name,
    read_source,
    store_verdicts,
    stored_verdicts,
)
from clients.messages import Decoding
from data_prep.tables.cells import image_names
from judging.errors import CustosError, FieldError
from judging.files.opening import shipped_yaml
from judging.registry import Registry
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
    """Column whose highest figure comes first in reports; default the paper's order, ours on top.
    """
    corrected: str | None = None
    """Column of the headline score, which people's labels correct."""
    radar: tuple[str, ...] = ()
    """Columns that are the axes of a radar picture."""
    note: str = ""
    """Explanation of what the table holds and what its columns mean, in whole sentences."""


def read_paper(
    name: str, rows: Mapping[str, Mapping[str, PaperRow]] | None = None
) -> tuple[tuple[PublishedTable, ...], tuple[Row, ...]]:
    """Read ``benchmarks/published/NAME.yaml``: the tables of a paper, and items of our own.

    ``rows`` are those of the tables, by source, that the file gives none.
    """
    path = Path(__file__).parents[1] / "published" / f"{name}.yaml"
    content = shipped_yaml(path)
    tables = []
    for fields in content["tables"]:
        figures = fields.get("rows") or (rows or {}).get(fields["source"], {})
        lists = {key: tuple(fields[key]) for key in ("columns", "radar") if key in fields}
        by_name = {row: tuple(cells) for row, cells in figures.items()}
        tables.append(PublishedTable(**{**fields, **lists, "rows": by_name}))
    return tuple(tables), tuple(content["example"])


@dataclass(frozen=True)
class ItemScore:
    """Score of one graded item under one measure."""

    id: str
    cluster: str
    """Items of a cluster (a chart, a question) are resampled together."""
    value: float | None
    """``None`` for an item without a verdict."""


class Benchmark(ABC):
    """Turns items into requests, verdicts into graded rows, and those into the paper's table.

    The fields without a value, and ``requests``, ``table`` and ``scores`` are what every benchmark
    has of its own.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    headline: ClassVar[str]
    """Name of the metric that ``scores`` returns."""
    tasks: ClassVar[tuple[str, ...]] = ()
    """Judge tasks of its requests that rules may leave to a judge. The rubrics of a single one may
    be worded anew by a user."""
    published: ClassVar[tuple[PublishedTable, ...]] = ()
    example: ClassVar[tuple[Row, ...]] = ()
    """A few items of our own with responses, in the shape that is graded."""
    grade_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that say what a judge or people found. They are removed before people's labels are
    joined, so that no judge's grade is read as people's."""
    found_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that say what a model's response holds or how it was graded. Another response has none
    of them."""
    full_score: ClassVar[float] = 1.0
    """Score of an item that is right throughout."""
    item_id: ClassVar[str] = "id"
    """Field that names an item."""
    image_field: ClassVar[str | None] = None
    hub_split: ClassVar[str] = "test"
    keyed: ClassVar[bool] = False
    """True if its JSON files are objects from id to row, false if they are arrays."""
    results: ClassVar[tuple[str, ...]] = ()
    """Patterns of the graded files in a folder of the benchmark's own code; the star, or else the
    file's folder, is the model."""
    styles: ClassVar[tuple[str, ...]] = ("standard",)
    """Ways of asking a model, the paper's main one first."""
    decodings: ClassVar[Mapping[str, Decoding]] = {}
    """Settings with which the paper sampled answers, by name."""
    facets: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that divide the items in a report (``a.b`` for a nested one), each with the values
    that come first. The first two are the rows and columns of the report's map of scores."""

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """Read the official items from a file, folder or hub id, as ``with_images`` gives them.

        Pictures that come as bytes are saved in ``images``. A ``CustosError`` names the source.
        """
        folder, rows = read_source(source, self.hub_split)
        loaded = []
        for row in rows:
            with error_location(Path(source)):
                loaded.append(self.with_images(row, folder, images))
        return loaded

    def with_images(self, row: Row, folder: Path, images: Path | None) -> Row:
        """Give a row ``images``, absolute paths or addresses of its pictures, unless it has them.

        Relative paths are relative to ``folder``. Pictures that come as bytes are saved in
        ``images``, and the bytes left out. Raise ``FieldError`` if the picture field holds no
        picture.
        """
        if self.image_field is None or ("images" in row and self.image_field != "images"):
            return row
        picture = row.get(self.image_field)
        try:
            names = image_names(picture, folder, images)
        except CustosError as error:
            raise FieldError(self.image_field, str(error), self.location(row)) from None
        kept = dict(row)
        if not isinstance(picture, str):
            kept.pop(self.image_field, None)
        return {**kept, "images": list(names)}

    def completed(self, rows: Sequence[Row]) -> list[Row]:
        """Fill in fields that follow from other fields, of the same row or of others."""
        return list(rows)

    def location(self, row: Row) -> str:
        """Name an item in an error: ``item 'x'``, or nothing without an id."""
        return item_name(row.get(self.item_id))

    def required_text(self, row: Row, field: str) -> str:
        """Read a field that must hold text; raise ``FieldError`` if it holds none."""
        text = row.get(field)
        if not isinstance(text, str) or not text.strip():
            raise FieldError(field, "is missing", self.location(row))
        return text

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """Word the questions to a model in one of ``styles``, by the field of the answer.

        By default this is the bare question. Raise ``FieldError`` if the row lacks a field.
        """
        return {"response": self.required_text(row, "question")}

    @abstractmethod
    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Make the requests that grade an item with its response; none if rules decide.

        Raise ``FieldError`` if the row lacks a field or holds a bad one.
        """

    def graded_row(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Put the verdicts on its requests into a row, in the benchmark's own graded shape."""
        tasks = (request.task for request in self.requests(row))
        return {**row, **store_verdicts(dict(zip(tasks, verdicts, strict=True)))}

    @abstractmethod
    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Compute the paper's table from graded rows, whether ours or the benchmark's own.

        It holds plain values ready for JSON: the table's sections, ``intervals`` (every figure
        again with ``low``, ``high`` and ``n``, and what ``measure_stated_confidence`` returns as
        ``calibration``), and ``n, coverage, statuses, judges``. Raise ``CustosError`` if a row does
        not fit or nothing is graded.
        """

    @abstractmethod
    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """Look up the headline score of every graded row."""

    def other_scores(self, rows: Sequence[Row]) -> dict[str, list[ItemScore]]:
        """Score rows by measures beside the headline, from 0 to 1, by name."""
        return {}

    def facets_of(self, row: Row) -> dict[str, str]:
        """Look up the item's part in each facet; facets that it lacks are left out."""
        parts = {}
        for name in self.facets:
            part: Any = row
            for key in name.split("."):
                part = part.get(key) if isinstance(part, dict) else None
            if part is not None:
                parts[name] = str(part)
        return parts

    def paper_rows(self, table: Mapping[str, Any], name: str) -> dict[str, dict[str, MeasuredRow]]:
        """Lay out a table's figures as rows of the published tables.

        ``table`` is what ``table`` returns, with ``run`` (``seconds``, ``cost``) where it is known;
        ``name`` is the model whose responses were graded. A published table's ``source`` leads to
        row names, and those to figures.
        """
        return {}

    def by_model(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        """Divide graded rows by the model that they name; one without a name by default."""
        return {"": list(rows)}

    def human_label(self, row: Row) -> str | None:
        """Look up people's label of an item, for benchmarks that measure the judge itself."""
        return None

    def graded_label(self, row: Row) -> str | None:
        """Spell the label of a graded item by which a judge's and people's grades are compared.

        By default this is ``1`` for a full headline score and ``0`` for none.
        """
        [score] = self.scores([row])
        return None if score.value is None else f"{score.value / self.full_score:g}"

    def compared_verdict(self, row: Row) -> Verdict | None:
        """Find the verdict whose label is ``graded_label``; ``None`` where a rule decided."""
        verdicts = list(stored_verdicts(row).values())
        return verdicts[0] if len(verdicts) == 1 else None


BENCHMARKS = Registry[Benchmark]("benchmark", "benchmarks")
benchmark = BENCHMARKS.declare
get_benchmark = BENCHMARKS.get
