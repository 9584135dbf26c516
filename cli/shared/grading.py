"""Filling a file of verdicts: options of the verbs that do it, and the progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from cli.shared.progress import counting_bar
from clients.kept_verdicts import Grader, KeptVerdict, NumberedRequest, fill_verdicts
from judging import CustosError
from judging.files.kept_work import KeptFile

RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Grade only the failed rows again; without it they stay failed."
    ),
]
Batch = Annotated[
    int, typer.Option(min=1, help="Grade this many rows between two saves to OUT.partial.")
]


def fill_showing(
    file: KeptFile[KeptVerdict],
    judge: Grader,
    read: Callable[[], Iterable[NumberedRequest]],
    total: int,
    batch: int,
    retry_failed: bool,
) -> None:
    """Fill a file of verdicts behind a progress bar.

    Raises:
        CustosError: If there are other than ``total`` verdicts in the end.
    """
    num_verdicts = 0
    with counting_bar("grading", total) as show:
        for num_verdicts in fill_verdicts(
            file, judge, read, batch=batch, retry_failed=retry_failed
        ):
            show(num_verdicts)
    if num_verdicts != total:
        raise CustosError(
            f"{file.path}: {num_verdicts} verdicts on {total} rows; "
            "has the input changed meanwhile?"
        )


def show_failed(file: KeptFile[KeptVerdict]) -> None:
    """Print how many rows failed and can be graded again."""
    if num_failed := sum(line.failed for line in file.lines()):
        typer.echo(
            f"{num_failed} failed, kept in {file.path}; --retry-failed grades them again", err=True
        )
