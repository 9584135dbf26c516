"""``custos bench example``: a small file of responses, to see its shape."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.options import Name
from cli.shared.outputs import claim, output_file


def example(
    name: Name,
    out: Annotated[
        Path,
        typer.Option(
            callback=output_file,
            help="Write the items to this JSON or JSONL file, which must not exist.",
        ),
    ],
) -> None:
    """Write a small valid file of responses to a benchmark, to see the shape of such files.

    We made the items and their responses; they are not from the benchmark. Put your own in their
    place. custos bench grade takes the file as it is.

    Example: custos bench example simplevqa --out responses.json
    """
    from benchmarks.framework.base import get_benchmark
    from benchmarks.framework.files import check_suffix, write_graded
    from judging.tasks import get_task

    benchmark = get_benchmark(name)
    check_suffix(out)
    claim(out)
    write_graded(out, benchmark.example, keyed=False)
    has_rules = any(get_task(task).has_rules for task in benchmark.tasks)
    judge = "--judge rules " if has_rules else "--judge JUDGE " if benchmark.tasks else ""
    typer.echo(f"{len(benchmark.example)} items with responses: {out}")
    typer.echo(
        f"grade them: custos bench grade {name} --responses {shlex.quote(str(out))} "
        f"{judge}--out graded.json"
    )
