"""Tables of the user: options that say what their columns are, and their rows as requests."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.shared.options import read_assignments
from clients.kept_verdicts import NumberedRequest
from data_prep.tables.cells import with_nested_columns
from data_prep.tables.examples import show_open_modes
from data_prep.tables.mapping import TableMapping, read_mapping
from data_prep.tables.reader import DEFAULT_TASK, BadRow, parse_table
from data_prep.tables.source import Table, open_table
from judging.errors import CustosError, FieldError
from judging.files.pictures import check_pictures
from judging.files.values import is_empty
from judging.fingerprint import file_sha256
from judging.judge.card import read_card, run_folder
from judging.log_lines import one_line
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest, ReferenceMode, Verdict, parse_record, shortened

TABLE_FORMATS = "CSV, TSV, XLSX, JSONL, JSON or Parquet file, or hub data set (owner/name:split)"
"""What a table may be, for help texts."""
Reasoning = Annotated[
    Literal["drop", "keep"] | None,
    typer.Option(
        help="drop: what a response holds in thinking tags (<think> and its like) is not graded; "
        "keep: it is. Default: the row's, or drop.",
    ),
]
AllowDropped = Annotated[
    bool,
    typer.Option(
        "--allow-dropped", help="Leave out rows that cannot be used, instead of stopping."
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """Options that say which columns of a table hold our fields, and what its labels mean.

    Options:
        columns: OURS=THEIRS: read our field OURS from the column THEIRS, such as references=gold or
            metadata.answerer=model. May be repeated. Default: columns called like our fields.
        labels: THEIRS=OURS,...: read their label THEIRS as our label OURS, such as
            right=Correct,wrong=Wrong; skip= says that it is no label. May be repeated. Default: the
            labels are ours, in any case.
        annotators: Columns that hold the labels of one person each, such as anna,ben,carla. A row
            without a label of its own has the one that most of them gave. Default: none.
        mapping: Read --map, --labels and the options below them from this YAML file; what is given
            as an option wins. Default: none.
        separator: Text between several references in one cell. Default: ; in spreadsheets.
        delimiter: What separates the cells of a CSV or TSV file: comma, semicolon, tab, pipe or a
            character. Default: what suits its rows.
        encoding: Encoding of the file, such as cp1252 or utf-16-le. Default: UTF-8, or UTF-16 if it
            begins with a byte order mark.
        reference_mode: any: each reference alone is right; any-partial: so too, and a part of one
            is Partial; all: together they are the answer. Default: the row's, or all.
        task: Task of every row; a row that names another task must have the same labels. Default:
            the row's, or hieval-qs.
        variant: Variant of the task. Default: the row's, or plain.
    """

    columns: Annotated[list[str] | None, typer.Option("--map")] = None
    labels: list[str] | None = None
    annotators: str | None = None
    mapping: Path | None = None
    separator: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    reference_mode: ReferenceMode | None = None
    task: str | None = None
    variant: str | None = None
    reasoning: Reasoning = None

    @property
    def _single(self) -> dict[str, Any]:
        """Pick the options that are a key of a mapping and have one value."""
        keys = TableMapping.model_fields.keys() - {"columns", "labels"}
        given = {name: value for name, value in vars(self).items() if value not in (None, "")}
        return {name: value for name, value in given.items() if name in keys}

    def words(self) -> list[str]:
        """Spell the options as they are typed, for a command that reads the same table."""
        pairs: list[tuple[str, Any]] = [("map", text) for text in self.columns or ()]
        pairs += [("labels", text) for text in self.labels or ()]
        pairs += [("annotators", self.annotators)] if self.annotators else []
        pairs += [("mapping", str(self.mapping))] if self.mapping else []
        pairs += self._single.items()
        return [word for name, value in pairs for word in _spelled(name.replace("_", "-"), value)]

    def read(self) -> TableMapping:
        """Read the mapping that the options and the file of ``--mapping`` say; options win."""
        from_file = TableMapping() if self.mapping is None else read_mapping(self.mapping)
        pairs = [pair for text in self.labels or () for pair in text.split(",") if pair.strip()]
        columns = read_assignments(self.columns, "--map", "OURS=THEIRS, each field once", once=True)
        labels = read_assignments(
            pairs, "--labels", "THEIRS=OURS, each label once", once=True, may_be_empty=True
        )
        values: dict[str, Any] = {"columns": columns, "labels": labels, **self._single}
        if self.annotators:
            values["annotators"] = [name.strip() for name in self.annotators.split(",")]
        options = parse_record(TableMapping, values, "--map, --labels, --task")
        merged = from_file.model_dump(exclude_unset=True) | options.model_dump(exclude_unset=True)
        merged["columns"] = {**from_file.columns, **options.columns}
        merged["labels"] = {**from_file.labels, **options.labels}
        return parse_record(TableMapping, merged, "--map and --mapping")


def trained_tasks(judges: Sequence[str]) -> tuple[str, ...]:
    """List the tasks that the only judge was trained for, if it lies here; none of several."""
    if len(judges) != 1:
        return ()
    [judge] = judges
    folder = run_folder(judge) or run_folder(judge.partition("=")[2] or judge)  # MODEL=RUN
    return tuple(read_card(folder).tasks) if folder else ()


def with_only_task(
    mapping: TableMapping, source: Path | Table, tasks: Collection[str]
) -> TableMapping:
    """Read a table that names no task as rows of the only one, if there is one, and say so."""
    [task] = tasks if len(tasks) == 1 else [DEFAULT_TASK]
    if mapping.task or task == DEFAULT_TASK or task not in task_names():
        return mapping
    table, column = open_table(source, mapping.text_format), mapping.columns.get("task", "task")
    if column in table.columns((column,)):
        return mapping
    typer.echo(one_line(f"note: {table.name} names no task; read with --task {task}"), err=True)
    return mapping.model_copy(update={"task": task})


def _spelled(name: str, value: object) -> tuple[str, ...]:
    """Spell an option with its value; a truth value is in the name alone."""
    if isinstance(value, bool):
        return (f"--{name}" if value else f"--no-{name}",)
    return f"--{name}", str(value)


def read_requests(
    source: Path | Table, mapping: TableMapping | None = None, risk: float | None = None
) -> Iterator[NumberedRequest]:
    """Yield ``(row number, request)`` for every row; a row without an id gets its number as one.

    A row that is no valid request comes as the verdict on it, with status ``invalid``. ``risk`` is
    that of every request; ``None``: that of its row, if it states one.
    """
    mapping = mapping or TableMapping()
    table = open_table(source, mapping.text_format)
    for row, parsed in parse_table(table, JudgeRequest, mapping):
        if isinstance(parsed, BadRow):
            message = str(parsed.error).removeprefix(f"{table.location(row)}: ")
            row_id = shortened(parsed.id) or str(row)
            yield row, Verdict(id=row_id, status="invalid", message=shortened(message))
            continue
        changes: dict[str, Any] = {} if parsed.id else {"id": str(row)}
        changes |= {} if risk is None else {"risk": risk}
        request = parsed.model_copy(update=changes)
        try:
            get_task(request.task).check(request)
            check_pictures(request.images)
        except CustosError as error:
            if isinstance(error, FieldError) and not getattr(request, error.field, None):
                if column := mapping.columns.get(error.field):
                    error = FieldError(error.field, f"column '{column}' is empty; {error.message}")
            yield row, Verdict.from_error(error, request)
        else:
            yield row, request


def group_of(row: object, mapping: TableMapping) -> str:
    """Look up the group of a row of a table, by its own name or by the column that is mapped to it.

    Rows of a group count together, as rows on one question do; a request does not say its group.
    """
    column = mapping.columns.get("group", "group")
    group = with_nested_columns(row, [column]).get(column) if isinstance(row, Mapping) else None
    return "" if is_empty(group) else str(group)


def divide_requests(
    source: Path | Table, mapping: TableMapping | None = None
) -> tuple[dict[int, JudgeRequest], dict[int, str]]:
    """Read the requests of a table, and why other rows are none, both by row number."""
    requests, problems = {}, {}
    for row, request in read_requests(source, mapping):
        if isinstance(request, Verdict):
            problems[row] = request.message or request.status
        else:
            requests[row] = request
    return requests, problems


def read_valid_requests(source: Path) -> list[JudgeRequest]:
    """Read the requests of a file in our own format; refuse a row that is none."""
    requests, problems = divide_requests(source)
    for row, message in problems.items():
        raise CustosError(f"{source} row {row}: {message}")
    return list(requests.values())


def file_digest(source: Path) -> str | None:
    """Hash a file with SHA-256; ``None`` for a hub data set, whose revision does not change."""
    return file_sha256(source) if source.is_file() else None


def warn_of_open_modes(source: Path | str, num_rows: int) -> None:
    """Say that so many rows with several references were read as one answer in parts."""
    for line in show_open_modes(num_rows):
        typer.echo(f"warning: {source}: {line}", err=True)


def note_doubts(table: Table, mapping: TableMapping) -> None:
    """Print what was decided about the text of a table and can be stated by an option."""
    column = mapping.columns.get("references", "references")
    for doubt in table.doubts(column, mapping.separator):
        typer.echo(one_line(f"note: {table.name}: {doubt}"), err=True)
