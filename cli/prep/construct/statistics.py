"""``custos prep construct statistics``: SimpleVQA's Table 2 of one's own items."""

from __future__ import annotations

from cli.prep.construct.asking import Rows
from cli.shared.options.benchmark import JsonOut
from cli.shared.tables import wide_console
from judging.files.records import write_json


def statistics(rows: Rows, json_out: JsonOut = None) -> None:
    """Show numbers, languages, tasks, domains and lengths of classified items, as Table 2 does.

    The paper's own figures stand beside them.

    Example: custos prep construct statistics --in data/classified/rows.jsonl --json table2.json
    """
    from rich.table import Table

    from data_prep.construction.model_writer import load_rows
    from data_prep.construction.steps.simplevqa import (
        DOMAINS,
        PUBLISHED,
        TASKS,
        ClassifiedItem,
        describe,
    )

    measured = describe(load_rows(rows, ClassifiedItem))
    names = {**TASKS, **DOMAINS}
    table = Table("", "", "here", "SimpleVQA")
    for name, value in measured.items():
        is_share = name in names
        cells = [
            f"{number:.2%}" if is_share else f"{number:,.0f}" for number in (value, PUBLISHED[name])
        ]
        table.add_row(name, names.get(name, ""), *cells)
    wide_console().print(table)
    if json_out is not None:
        write_json(json_out, measured)
