"""The verbs of ``custos prep construct`` that ask nobody, or people: lists, pairs, sheets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.prep.asking import Rows
from cli.shared.options import JsonOut, command_line, with_groups
from cli.shared.outputs import OutFile, OutFolder, claim, claim_json, output_file, own, spare
from cli.shared.screen import show_counts, show_problems, wide_console
from cli.shared.tables import divide_requests
from data_prep.construction.charthal import count_cells, rows_to_check, write_benchmark
from data_prep.construction.forms.base import FORMS, NO, YES, Form, Value
from data_prep.construction.model_writer import REJECTS, ROWS, load_rows
from data_prep.construction.responses import KEYS, RIGHT_ANSWERS, group_responses, pair_responses
from data_prep.construction.responses import screen as screen_rows
from data_prep.construction.sheets import (
    Collected,
    mix_in_gold,
    read_gold_rows,
    read_sheet_rows,
    read_table,
    write_sheet,
)
from data_prep.construction.sheets import collect as bring_together
from data_prep.construction.steps import simplevqa
from data_prep.construction.steps.base import STEPS, StepRow
from data_prep.splits.filters import read_verdicts
from data_prep.splits.manifest import check_replaceable, describe_file, write_with_manifest
from evaluation.people.agreement import label_agreement
from judging.errors import CustosError
from judging.files.records import write_json, write_records
from judging.types import JudgeRequest

FormName = Annotated[
    str, typer.Argument(help="Name of the form; custos prep construct forms lists them.")
]
ChartsFolder = Annotated[Path, typer.Argument(help="Folder that generate wrote.")]
CHARTHAL = "charthal"
"""Form of ``custos prep charthal-construct``, whose rows are in a folder."""
DISAGREEMENTS, AGREEMENT = "disagreements.jsonl", "agreement.json"


def steps() -> None:
    """List the steps: what each does, and which fields it needs of a row.

    Example: custos prep construct steps
    """
    table = Table("step", "what it does", "fields of a row")
    for entry in STEPS:
        fields = [name for name in entry.row_type.model_fields if name != "id"]
        table.add_row(entry.name, entry.summary, ", ".join(fields))
    wide_console().print(table)
    typer.echo("custos prep construct step NAME --help says how to run one.")


def forms() -> None:
    """List the forms: what people decide, and the columns that they fill in.

    Example: custos prep construct forms
    """
    table = Table("form", "what people decide", "columns", "people per row")
    for entry in FORMS:
        columns = ", ".join(column.name for column in entry.entries)
        table.add_row(entry.name, entry.summary, columns, str(entry.per_row))
    wide_console().print(table)
    typer.echo("custos prep construct sheet NAME --in ROWS --out FILE writes a sheet.")


@with_groups
def screen(
    rows: Rows,
    responses: Annotated[list[Path], typer.Option()],
    verdicts: Annotated[list[Path], typer.Option()],
    out: OutFile,
    models: Annotated[int, typer.Option(min=1)] = 4,
) -> None:
    """Drop the questions that every model answers, as SimpleVQA does with four models.

    A response is right if all judges give it the best label of its task. A question is kept if at
    least one response is wrong; right_answers says which models answer it. Questions without a
    wrong response, for which responses or labels are missing, are in neither and are counted.

    Example: custos prep construct screen --in data/checked/rows.jsonl
    --responses data/answers/rows.jsonl --verdicts data/judges/verdicts.json --out data/hard.jsonl

    Options:
        responses: Read this file of custos prep construct respond. May be repeated.
        verdicts: Read this file of custos prep construct verdicts on them. May be repeated.
        out: Write the kept rows to this JSONL file.
        models: Drop a row only if this many models have answered it.
    """
    claim(out, own([RIGHT_ANSWERS]))
    items = load_rows(rows, StepRow)
    answered = [request for path in responses for request in divide_requests(path)[0].values()]
    labels: dict[str, list[str | None]] = defaultdict(list)
    for name, given in (each for path in verdicts for each in read_verdicts(path).items()):
        labels[name] += given
    kept, dropped, unscreened = screen_rows(items, answered, labels, models)
    if not kept:
        raise CustosError(f"{rows}: no question is left that a model answers wrongly")
    write_records(out, kept)
    typer.echo(
        f"{len(kept)} kept, {len(dropped)} answered by all, {len(unscreened)} not screened: {out}"
    )


@with_groups
def pair(
    responses: Annotated[list[Path], typer.Option("--in")],
    out: OutFile,
    match_ups: Annotated[int, typer.Option(min=1)] = 3,
    scores: Annotated[Path | None, typer.Option(callback=output_file)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Pair responses to the same question, each with three others at least, as TruthfulJudge does.

    No more pairs are made than that takes. Questions with too few responses are left out and
    counted: three match-ups take the responses of four models. Who answered is in the metadata, and
    nobody who fills in a sheet sees it.

    Example: custos prep construct pair --in data/answers/rows.jsonl --out pairs.jsonl

    Options:
        responses: Read this file of custos prep construct respond. May be repeated.
        out: Write the pairs to this JSONL file.
        match_ups: Let each response meet at least this many others.
        scores: Write the responses to this JSONL file, too, up to four of a question in a row, for
            form truthful-scores. Default: none.
        seed: Another seed draws other pairs, and other responses as A.
    """
    for option, path in (("--out", out), ("--scores", scores)):
        if path is not None:
            claim(path, own(KEYS), option=option)
    answered: list[JudgeRequest] = []
    for path in responses:
        requests, problems = divide_requests(path)
        answered += requests.values()
        show_problems(path, problems)
    pairs, too_few = pair_responses(answered, match_ups, seed)
    if not pairs:
        raise CustosError(
            f"no question has the responses of {match_ups + 1} models, which {match_ups} match-ups "
            "of each response take; add models, or lower --match-ups"
        )
    write_records(out, pairs)
    if scores is not None:
        groups = group_responses(answered, seed)
        write_records(scores, groups)
        typer.echo(f"{len(answered)} responses to score, in {len(groups)} rows: {scores}")
    typer.echo(f"{len(pairs)} pairs, {len(too_few)} questions with too few responses: {out}")


def statistics(rows: Rows, json_out: JsonOut = None) -> None:
    """Show numbers, languages, tasks, domains and lengths of classified items, as Table 2 does.

    The paper's own figures stand beside them.

    Example: custos prep construct statistics --in data/classified/rows.jsonl --json table2.json
    """
    claim_json(json_out, ("Data", "Max query words"))
    measured = simplevqa.describe(load_rows(rows, simplevqa.ClassifiedItem))
    names = {**simplevqa.TASKS, **simplevqa.DOMAINS}
    table = Table("", "", "here", "SimpleVQA")
    for name, value in measured.items():
        is_share = name in names
        cells = [
            f"{number:.2%}" if is_share else f"{number:,.0f}"
            for number in (value, simplevqa.PUBLISHED[name])
        ]
        table.add_row(name, names.get(name, ""), *cells)
    wide_console().print(table)
    if json_out is not None:
        write_json(json_out, measured)


@with_groups
def sheet(
    name: FormName,
    rows: Rows,
    out: OutFile,
    gold: Path | None = None,
    gold_share: Annotated[float, typer.Option(min=0, max=0.9)] = 0.1,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write a sheet for one person: rows in random order, without what tells who answered.

    A page (.html) holds its pictures, needs no server and is filled in with the keyboard; it saves
    a CSV file. Give each person another seed, and name the files that come back after the people.

    Example: custos prep construct sheet hieval-ea --in data/answers/rows.jsonl --out anna.html

    Options:
        out: Write the sheet to this new file: .html for a page, .csv or .tsv for a spreadsheet.
        gold: Mix in items of this file, whose field gold says what is to be filled in. Default:
            none.
        gold_share: Share of the sheet that is gold items.
        seed: Another seed gives another order.
    """
    claim(out)  # it may be filled in
    form = FORMS.get(name)
    loaded = _read_rows(rows, form)
    gold_rows = read_gold_rows(gold, form) if gold else []
    if both := {row["id"] for row in loaded} & {row["id"] for row in gold_rows}:
        raise CustosError(f"{gold}: gold item '{min(both)}' is also in {rows}")
    chosen = mix_in_gold(loaded, gold_rows, gold_share, seed)
    write_sheet(out, form, chosen)
    typer.echo(f"{len(loaded)} rows and {len(chosen) - len(loaded)} gold items: {out}")


@with_groups
def charthal_sheet(
    folder: ChartsFolder, out: OutFile, seed: Annotated[int, typer.Option(min=0)] = 0
) -> None:
    """Write a sheet for one annotator, who says keep or discard and corrects in place.

    Example: custos prep charthal-construct sheet data/mine --out anna.csv

    Options:
        out: Write the annotator's sheet to this new file: .html for a page, .csv or .tsv for a
            spreadsheet.
        seed: Another seed gives another order.
    """
    sheet(name=CHARTHAL, rows=folder, out=out, seed=seed)


def _read_rows(path: Path, form: Form) -> list[dict[str, Any]]:
    """Read the rows of a file, or the questions in a folder that ``generate`` wrote."""
    return rows_to_check(path) if path.is_dir() else read_sheet_rows(path, form)


@with_groups
def collect(
    name: FormName,
    rows: Rows,
    sheets: Annotated[list[Path], typer.Option("--sheet")],
    out: OutFolder,
    third: Path | None = None,
    gold: Path | None = None,
    per_row: Annotated[int | None, typer.Option(min=1)] = None,
    min_kappa: Annotated[float | None, typer.Option(min=-1, max=1)] = None,
    min_gold: Annotated[float | None, typer.Option(min=0, max=1)] = None,
) -> None:
    """Bring people's sheets together: settled rows, disagreements, and how far people agree.

    A row is settled if everybody who filled it in agrees, by the form's own rules; of three or more
    people, if more than half do. The others are in OUT/disagreements.jsonl, from which custos prep
    construct sheet makes a sheet for a third person. OUT/agreement.json has Cohen's kappa, over all
    labels and for each, everybody's kappa and share of right gold items, and who must be retrained
    by --min-kappa and --min-gold.

    Example: custos prep construct collect hieval-ea --in data/answers/rows.jsonl --sheet anna.csv
    --sheet ben.csv --third carla.csv --out data/labels

    Options:
        sheets: Read this filled-in sheet. Repeat for every person.
        out: Write rows, disagreements, rejects and agreement to this folder.
        third: Sheet of the person who decides where others differ. Default: differences stay open.
        gold: The file of gold items that were mixed in. Default: none were.
        per_row: Count a row as settled if so many people filled it in and agree; of three or more,
            if more than half agree. Default: the form's own number.
        min_kappa: Name the people whose Cohen's kappa with the others is lower, in any entry with
            one choice and no scale. The paper gives no number. Default: none.
        min_gold: Name the people whose share of right gold items is lower. The paper gives no
            number. Default: none.
    """
    form = FORMS.get(name)
    names = (ROWS, DISAGREEMENTS, REJECTS, AGREEMENT)
    spare([rows, *([gold] if gold else [])], out, names)
    check_replaceable(out, names)
    collected = _bring_together(form, rows, sheets, third, gold, per_row)
    agreement = _agreement(form, collected, min_kappa, min_gold)
    files = [*sheets, *([third] if third else [])]
    source = {**describe_file(rows), "sheets": [describe_file(path) for path in files]}
    with write_with_manifest(out, source=source, command=command_line()) as manifest:
        write_records(out / ROWS, collected.rows)
        write_records(out / DISAGREEMENTS, collected.disagreements)
        write_records(out / REJECTS, collected.discarded)
        write_json(out / AGREEMENT, agreement)
        manifest.update(form=form.name, counts=collected.counts)
    table = Table("", "label", "n", "agreement", "kappa", "95 % interval")
    for entry, measured in agreement["entries"].items():
        kappas = {"all": measured["kappa"]}
        if len(measured["per_label"]) > 2:
            kappas |= {**measured["per_label"], "mean": measured["mean_per_label"]}
        for label, kappa in kappas.items():
            is_first = label == "all"
            table.add_row(
                entry if is_first else "",
                label,
                str(kappa["n"]) if is_first else "",
                f"{measured['agreement']['value']:.3f}" if is_first else "",
                *_cells(kappa),
            )
    if agreement["entries"]:
        wide_console().print(table)
    for annotator, (right, num) in collected.gold.items():
        if num:
            typer.echo(f"{annotator}: {right} of {num} gold items right")
    for annotator, of_person in agreement["annotators"].items():
        if of_person["below"]:
            typer.echo(f"retrain {annotator}: {', '.join(of_person['below'])}")
    if not (min_kappa is None and min_gold is None):
        below = sum(bool(each["below"]) for each in agreement["annotators"].values())
        typer.echo(f"{below} of {len(agreement['annotators'])} people are below a threshold")
    counts = ", ".join(
        f"{count} {end.replace('_', ' ')}"
        for end, count in collected.counts.items()
        if count or end != "left_out"
    )
    typer.echo(f"{counts}: {out}")


def _agreement(
    form: Form, collected: Collected, min_kappa: float | None, min_gold: float | None
) -> dict[str, Any]:
    """Compute agreement by entry (by option, where several may be chosen) and by person."""

    def marks(value: Value | None, option: str) -> str:
        return YES if option in (value or ()) else NO

    measured: dict[str, Any] = {}
    kappas: dict[str, dict[str, Any]] = {name: {} for name in collected.gold}
    for entry in form.entries:
        pairs = collected.pairs.get(entry.name, [])
        if entry.kind == "choice":
            options = list(entry.options)
            asked = [each for each in pairs if None not in each.values]
            labels = [(str(first), str(second)) for first, second in (p.values for p in asked)]
            if asked:
                questions = [each.question for each in asked]
                measured[entry.name] = label_agreement(labels, options, questions)
            for name in () if entry.margin else kappas:
                own = [
                    (first, second) if each.people[0] == name else (second, first)
                    for each, (first, second) in zip(asked, labels, strict=True)
                    if name in each.people
                ]
                questions = [each.question for each in asked if name in each.people]
                if own:
                    kappas[name][entry.name] = label_agreement(own, options, questions)["kappa"]
        elif entry.kind == "choices" and pairs:
            questions = [each.question for each in pairs]
            for option in entry.options:
                marked = [
                    (marks(first, option), marks(second, option))
                    for first, second in (each.values for each in pairs)
                ]
                measured[f"{entry.name}: {option}"] = label_agreement(marked, [YES, NO], questions)
    gold = {name: {"right": right, "n": n} for name, (right, n) in collected.gold.items() if n}
    people: dict[str, Any] = {}
    for name, by_entry in kappas.items():
        below = []
        for entry_name, kappa in by_entry.items():
            value = kappa["value"]
            if min_kappa is not None and value is not None and value < min_kappa:
                below.append(f"kappa of {entry_name} {value:.2f} < {min_kappa:g}")
        right, num = collected.gold[name]
        if min_gold is not None and num and right / num < min_gold:
            below.append(f"gold {right} of {num} < {min_gold:g}")
        people[name] = {"kappa": by_entry, "below": below}
    thresholds = {"kappa": min_kappa, "gold": min_gold}
    return {"entries": measured, "gold": gold, "annotators": people, "thresholds": thresholds}


def _cells(kappa: dict[str, Any]) -> tuple[str, str]:
    """Format a kappa and its interval; a kappa that does not exist is a dash."""
    value, low, high = (kappa[name] for name in ("value", "low", "high"))
    if value is None:
        return "-", ""
    return f"{value:.4f}", "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


@with_groups
def charthal_collect(
    folder: ChartsFolder,
    sheets: Annotated[list[Path], typer.Option("--sheet")],
    final: Path | None = None,
) -> None:
    """Bring sheets together into FOLDER/charthal.json and FOLDER/disagreements.json.

    Example: custos prep charthal-construct collect data/mine --sheet anna.csv --sheet ben.csv

    Options:
        sheets: Read this filled-in sheet. Repeat for every annotator.
        final: Sheet that settles what annotators differ on. Default: differences stay open.
    """
    collected = _bring_together(FORMS.get(CHARTHAL), folder, sheets, final)
    kept = write_benchmark(folder, collected)
    show_counts("cell", "questions", count_cells(kept))
    typer.echo(
        f"{len(kept)} kept, {len(collected.discarded)} discarded, "
        f"{len(collected.disagreements)} disagreements, {len(collected.unfinished)} unchecked: "
        f"{folder}"
    )


def _bring_together(
    form: Form,
    rows: Path,
    sheets: Sequence[Path],
    third: Path | None = None,
    gold: Path | None = None,
    per_row: int | None = None,
) -> Collected:
    """Combine the sheets that people filled in for some rows."""
    return bring_together(
        form,
        _read_rows(rows, form),
        [read_table(path, form) for path in sheets],
        read_table(third, form) if third else None,
        read_gold_rows(gold, form) if gold else (),
        per_row,
    )
