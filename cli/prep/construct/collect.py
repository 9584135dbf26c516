"""``custos prep construct collect``: several people's sheets brought together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.prep.construct.asking import Rows
from cli.prep.construct.sheet import FormName
from cli.shared.command_line import command_line
from cli.shared.output_folders import check_keeps_sources, output_folder
from cli.shared.tables import wide_console
from data_prep.construction.forms.base import NO, YES

if TYPE_CHECKING:
    from data_prep.construction.forms.base import Form, Value
    from data_prep.construction.sheets import Collected, Comparison

DISAGREEMENTS, AGREEMENT = "disagreements.jsonl", "agreement.json"


def collect(
    name: FormName,
    rows: Rows,
    sheets: Annotated[
        list[Path],
        typer.Option("--sheet", help="Read this filled-in sheet. Repeat for every person."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            callback=output_folder,
            help="Write rows, disagreements, rejects and agreement to this folder.",
        ),
    ],
    third: Annotated[
        Path | None,
        typer.Option(
            help="Sheet of the person who decides where others differ. Default: differences stay "
            "open."
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="The file of gold items that were mixed in. Default: none were."),
    ] = None,
    per_row: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Count a row as settled if so many people filled it in and agree; of three or "
            "more, if more than half agree. Default: the form's own number.",
        ),
    ] = None,
    min_kappa: Annotated[
        float | None,
        typer.Option(
            min=-1,
            max=1,
            help="Name the people whose Cohen's kappa with the others is lower, in any entry with "
            "one choice and no scale. The paper gives no number. Default: none.",
        ),
    ] = None,
    min_gold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Name the people whose share of right gold items is lower. The paper gives no "
            "number. Default: none.",
        ),
    ] = None,
) -> None:
    """Bring people's sheets together: settled rows, disagreements, and how far people agree.

    A row is settled if everybody who filled it in agrees, by the form's own rules; of three or more
    people, if more than half do. The others are in OUT/disagreements.jsonl, from which custos prep
    construct sheet makes a sheet for a third person. OUT/agreement.json has Cohen's kappa, over all
    labels and for each, everybody's kappa and share of right gold items, and who must be retrained
    by --min-kappa and --min-gold.

    Example: custos prep construct collect hieval-ea --in data/answers/rows.jsonl --sheet anna.csv
    --sheet ben.csv --third carla.csv --out data/labels
    """
    from data_prep.construction.forms.base import FORMS
    from data_prep.construction.model_writer import REJECTS, ROWS
    from data_prep.construction.sheets import collect as bring_together
    from data_prep.construction.sheets import read_gold_rows, read_sheet_rows, read_table
    from data_prep.splits.manifest import (
        check_replaceable,
        describe_file,
        write_with_manifest,
    )
    from judging.files.records import write_json, write_records

    form = FORMS.get(name)
    names = (ROWS, DISAGREEMENTS, REJECTS, AGREEMENT)
    check_keeps_sources(out, names, [rows, *([gold] if gold else [])])
    check_replaceable(out, names)
    collected = bring_together(
        form,
        read_sheet_rows(rows),
        [read_table(path, form) for path in sheets],
        read_table(third, form) if third else None,
        read_gold_rows(gold, form) if gold else (),
        per_row,
    )
    agreement = _agreement(form, collected, min_kappa, min_gold)
    files = [*sheets, *([third] if third else [])]
    source = {**describe_file(rows), "sheets": [describe_file(path) for path in files]}
    with write_with_manifest(out, source=source, command=command_line()) as manifest:
        write_records(out / ROWS, collected.rows)
        write_records(out / DISAGREEMENTS, collected.disagreements)
        write_records(out / REJECTS, collected.discarded)
        write_json(out / AGREEMENT, agreement)
        manifest.update(form=form.name, counts=collected.counts)
    _show(agreement)
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
    """Return agreement by entry (by option, where several may be chosen) and by person."""
    from evaluation.people.agreement import label_agreement

    measured: dict[str, Any] = {}
    kappas: dict[str, dict[str, Any]] = {name: {} for name in collected.gold}
    for entry in form.entries:
        pairs = collected.pairs.get(entry.name, [])
        if entry.kind == "choice":
            options = list(entry.options)
            asked = [(each, *_choices(each)) for each in pairs if None not in each.values]
            if asked:
                labels = [(first, second) for _, first, second in asked]
                questions = [each.question for each, *_ in asked]
                measured[entry.name] = label_agreement(labels, options, questions)
            for name in () if entry.margin else kappas:
                own = [
                    (first, second) if each.people[0] == name else (second, first)
                    for each, first, second in asked
                    if name in each.people
                ]
                questions = [each.question for each, *_ in asked if name in each.people]
                if own:
                    kappas[name][entry.name] = label_agreement(own, options, questions)["kappa"]
        elif entry.kind == "choices" and pairs:
            questions = [each.question for each in pairs]
            for option in entry.options:
                marked = [
                    (_marks(first, option), _marks(second, option))
                    for first, second in (each.values for each in pairs)
                ]
                measured[f"{entry.name}: {option}"] = label_agreement(marked, [YES, NO], questions)
    gold = {name: {"right": right, "n": n} for name, (right, n) in collected.gold.items() if n}
    people = {
        name: {
            "kappa": by_entry,
            "below": [
                *_kappas_below(by_entry, min_kappa),
                *_gold_below(gold.get(name), min_gold),
            ],
        }
        for name, by_entry in kappas.items()
    }
    thresholds = {"kappa": min_kappa, "gold": min_gold}
    return {"entries": measured, "gold": gold, "annotators": people, "thresholds": thresholds}


def _choices(pair: Comparison) -> tuple[str, str]:
    first, second = pair.values
    return str(first), str(second)


def _kappas_below(by_entry: Mapping[str, Any], least: float | None) -> list[str]:
    """Return the entries in which a person's kappa is below a threshold, with both numbers."""
    if least is None:
        return []
    return [
        f"kappa of {entry} {kappa['value']:.2f} < {least:g}"
        for entry, kappa in by_entry.items()
        if kappa["value"] is not None and kappa["value"] < least
    ]


def _gold_below(gold: Mapping[str, int] | None, least: float | None) -> list[str]:
    """Return the gold items of a person whose share of right ones is below a threshold."""
    if least is None or gold is None or gold["right"] / gold["n"] >= least:
        return []
    return [f"gold {gold['right']} of {gold['n']} < {least:g}"]


def _marks(value: Value | None, option: str) -> str:
    return YES if option in (value or ()) else NO


def _cells(kappa: dict[str, Any]) -> tuple[str, str]:
    """Return a kappa and its interval as texts; a kappa that does not exist as a dash."""
    value, low, high = (kappa[name] for name in ("value", "low", "high"))
    if value is None:
        return "-", ""
    return f"{value:.4f}", "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _show(agreement: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("", "label", "n", "agreement", "kappa", "95 % interval")
    for entry, measured in agreement["entries"].items():
        kappas = {"all": measured["kappa"], **measured["per_label"]}
        if len(measured["per_label"]) > 2:
            kappas["mean"] = measured["mean_per_label"]
        else:
            kappas = {"all": measured["kappa"]}
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
