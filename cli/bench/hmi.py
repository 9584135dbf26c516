"""``custos bench hmi``: how misleading people find charts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cli.shared.options import Items
from cli.shared.outputs import claim, output_folder
from cli.shared.screen import wide_console


def hmi(
    items: Items,
    out: Annotated[
        Path,
        typer.Option(
            callback=output_folder, help="Write hmi.md, hmi.json and a picture to this folder."
        ),
    ],
) -> None:
    """Report CHARTOM's human misleadingness index (HMI) from people's answers to FACT questions.

    Items need human_answers, as custos prep construct collect writes them, or an hmi. The report
    has the HMI of every chart with its interval, beside the other chart of its pair (Table 1), the
    acceptable answers and what people answered (Table 2), and all charts sorted (Figure 3).

    Example: custos bench hmi --items items.jsonl --out hmi
    """
    from benchmarks.chartom.hmi_report import HEADINGS, measure_hmi, pair_rows, write_hmi_report
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import error_location

    claim(out, lambda out: True, names=("hmi.md", "hmi.json"), sources=[Path(items)])
    with error_location(Path(items)):
        charts = measure_hmi(get_benchmark("chartom").load(items, out / "images"))
    write_hmi_report(charts, out)
    table = Table(*HEADINGS)
    for row in pair_rows(charts):
        table.add_row(*row)
    console = wide_console()
    console.print(table)
    console.print(f"{len(charts)} charts: {out / 'hmi.md'}")
