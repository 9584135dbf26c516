"""The verbs of ``custos prep construct`` for Label Studio and Argilla: tasks, and labels back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.shared.options import read_assignments, with_groups
from cli.shared.outputs import OutFile, OutFolder, claim
from cli.shared.review_file import plain_id, read_by_row
from cli.shared.screen import check_skipped
from cli.shared.tables import (
    TABLE_FORMATS,
    AllowDropped,
    TableOptions,
    divide_requests,
    note_doubts,
)
from cli.shared.verdicts import cell_text
from data_prep.construction import argilla, label_studio
from data_prep.construction.forms.base import Form
from data_prep.construction.labelling import bring_back, form_of, show
from data_prep.tables.cells import with_nested_columns
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import TableReader
from data_prep.tables.source import Table, open_table
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.csv_rows import DELIMITER_BY_SUFFIX, write_spreadsheet
from judging.files.records import read_rows, write_json, write_records
from judging.files.values import is_empty
from judging.types import JudgeRequest, LabelledExample

Tool = Literal["label-studio", "argilla"]
CONFIGURATION, TASKS = "labels.xml", "tasks.json"
WRITTEN: Mapping[Tool, tuple[str, ...]] = {
    "label-studio": (CONFIGURATION, TASKS),
    "argilla": (argilla.SETTINGS, argilla.DATASET, argilla.RECORDS),
}
KEPT = ("weight", "split", "sampling_probability", "group", "source")
"""Fields of a labelled example that a row may have before it has a label."""


@with_groups
def labelling(
    tool: Annotated[Tool, typer.Argument(help="Tool that people label in.")],
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"Read this {TABLE_FORMATS}.")],
    out: OutFolder,
    verdicts: Path | None = None,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Write the rows of a table as tasks for Label Studio or Argilla, where people label them.

    Labels, questions and rules are those of the task of the rows, or of its screen (custos prep
    construct forms). The tasks hold nothing but what people see: no id, no name of a model. For
    Label Studio OUT gets labels.xml and tasks.json, for Argilla a folder that
    rg.Dataset.from_disk takes.

    Example: custos prep construct labelling label-studio answers.csv --task hieval-qs --out tasks

    Options:
        out: Write to this folder.
        verdicts: Show people the judge's labels of this file of custos grade, which they may then
            only confirm. Default: they see no judge.
    """
    claim(out, names=WRITTEN[tool])
    mapping = table_options.read()
    requests = _read(open_table(table, mapping.text_format), mapping, allow_dropped)
    form = _form(table, requests)
    judged = read_by_row(verdicts, table, mapping) if verdicts else {}
    for number, request in requests.items():
        verdict = judged.get(number)
        if verdicts and (verdict is None or plain_id(verdict.id) != plain_id(request.id)):
            raise CustosError(f"{verdicts}: no verdict on row {number} of {table}")
    shown = {
        each.item: each
        for number, request in requests.items()
        if (each := show(form, request, judged.get(number)))
    }
    items = [*shown.values()]
    out.mkdir(parents=True, exist_ok=True)
    if tool == "argilla":
        (out / argilla.DATASET).parent.mkdir(exist_ok=True)
        write_json(out / argilla.DATASET, {"name": out.resolve().name})
        write_json(out / argilla.SETTINGS, argilla.settings(form, items))
        write_json(out / argilla.RECORDS, argilla.records(form, items))
    else:
        write_text(out / CONFIGURATION, label_studio.configuration(form, items))
        write_json(out / TASKS, label_studio.tasks(form, items))
    judge = "with the judge's labels" if verdicts else "without a judge's label"
    typer.echo(f"{len(items)} tasks of form {form.name}, {judge}: {out}")


@with_groups
def labelled(
    export: Annotated[Path, typer.Argument(help="File that Label Studio or Argilla exported.")],
    table: Annotated[str, typer.Option("--in", metavar="TABLE")],
    out: OutFile,
    person: list[str] | None = None,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Bring the labels of people from Label Studio or Argilla back to the rows of the table.

    OUT has the rows that somebody labelled, with everybody's label by name; custos eval, custos
    train and custos prep table read it as it is. Skipped tasks, drafts and predictions are no
    labels; of several labels of one person on a task the last one counts. Labels that the table has
    already are not in OUT.

    Example: custos prep construct labelled export.json --in answers.csv --person 1=anna
    --person 2=ben --out labelled.csv

    Options:
        table: Read the table that the tasks were made of, with the same options.
        out: Write the labelled rows to this new file: .jsonl, .csv or .tsv.
        person: THEIRS=NAME: call a person NAME whom the export calls THEIRS (a number, an address,
            an id). May be repeated. Default: what the export calls them.
    """
    claim(out)
    if out.suffix not in (".jsonl", *DELIMITER_BY_SUFFIX):
        raise CustosError(f"--out '{out}': expected a file ending in .jsonl, .csv or .tsv")
    names = read_assignments(person, "--person", "THEIRS=NAME, each once", once=True)
    mapping = table_options.read()
    opened = open_table(table, mapping.text_format)
    requests = _read(opened, mapping, allow_dropped)
    form = _form(table, requests)
    rows: list[dict[str, Any]] = []
    # A folder is one that Argilla wrote.
    for number, row in read_rows(export / argilla.RECORDS if export.is_dir() else export):
        if isinstance(row, CustosError):
            raise row
        if not isinstance(row, dict):
            raise CustosError(f"{export} row {number}: expected an object")
        rows.append(row)
    tool = next((each for each in (label_studio, argilla) if any(map(each.is_export, rows))), None)
    if tool is None:
        raise CustosError(
            f"{export}: no export of Label Studio (JSON, JSON-MIN) or Argilla (records.json, rows "
            "of to_datasets)"
        )
    try:
        annotations = list(tool.read_export(rows, form))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CustosError(f"{export}: not of the shape that the tool exports: {error!r}") from None
    # What the rows say that labelled rows have and requests have not.
    columns = {name: mapping.columns.get(name, name) for name in KEPT}
    nested = ((n, with_nested_columns(row, columns.values())) for n, row in opened.rows())
    read = TableReader(opened, JudgeRequest, mapping, None, picks_cells=True).value
    kept = (
        (
            requests[number],
            {n: read(n, row[c]) for n, c in columns.items() if not is_empty(row.get(c))},
        )
        for number, row in nested
        if number in requests
    )
    found = bring_back(form, kept, annotations, names, mapping.labels)
    check_skipped(export, found.problems, allow_dropped=allow_dropped)
    if not found.rows:
        raise CustosError(
            f"{export}: no label of form {form.name} on a row of {table}; give the table that the "
            "tasks were made of, with the same options; fields have the names of its labels.xml"
        )
    _write(out, found.rows)
    for again in found.replaced:
        typer.echo(f"labelled again, the last counts: {again}", err=True)
    people = dict.fromkeys(name for row in found.rows for name in row.annotators)
    counts = ", ".join(f"{count} {kind}" for kind, count in found.counts.items())
    typer.echo(f"{len(found.rows)} rows by {', '.join(people)} ({counts}): {out}")


def _read(table: Table, mapping: TableMapping, allow_dropped: bool) -> dict[int, JudgeRequest]:
    """Read the requests of a table by row number; refuse bad rows unless they may be left out."""
    note_doubts(table, mapping)
    requests, problems = divide_requests(table, mapping)
    messages = [f"{table.location(number)}: {text}" for number, text in problems.items()]
    check_skipped(table.name, messages, allow_dropped=allow_dropped)
    return requests


def _form(table: str, requests: Mapping[int, JudgeRequest]) -> Form:
    tasks = sorted({request.task for request in requests.values()})
    if len(tasks) != 1:
        found = ", ".join(tasks) or "none"
        raise CustosError(f"{table}: people label rows of one task at a time, and here are {found}")
    return form_of(tasks[0], list(requests.values()))


def _write(out: Path, rows: list[LabelledExample]) -> None:
    """Write labelled rows; a spreadsheet has a column for each person."""
    if out.suffix == ".jsonl":
        write_records(out, rows)
        return
    cells = [row.model_dump(mode="json", exclude_defaults=True) for row in rows]
    for of_row in cells:
        people = of_row.pop("annotator_labels", {})
        of_row |= {f"annotator_labels.{name}": label for name, label in people.items()}
        if len(responses := of_row.pop("responses")) == 1:
            of_row["response"] = responses[0]
        else:
            of_row["response_a"], of_row["response_b"] = responses
    columns = list(dict.fromkeys(name for of_row in cells for name in of_row))
    lines = ([cell_text(of_row.get(name)) for name in columns] for of_row in cells)
    write_spreadsheet(out, columns, lines)
