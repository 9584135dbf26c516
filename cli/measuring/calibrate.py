"""``custos calibrate``: confidences and thresholds of a judge, fitted on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.labelled_examples import read_examples
from cli.shared.options.groups import with_groups
from cli.shared.options.mapping import TABLE_FORMATS, AllowDropped, TableOptions
from judging import CustosError, Judge
from judging.judge import CALIBRATION_FILE


@with_groups
def calibrate(
    run: Annotated[str, typer.Argument(help="Run folder or shipped judge.")],
    data: Annotated[
        Path,
        typer.Option(
            help=f"Read labelled examples that nothing was trained on from this {TABLE_FORMATS}."
        ),
    ],
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Fit the calibration of a judge again, in its folder.

    Training does this by itself. Do it again for confidences that are honest on data of your own,
    or for a judge of an older version that has no thresholds for --risk. Measure the judge on other
    rows than these.

    Example: custos calibrate runs/mine --data data/mine/cal.jsonl
    """
    from train.finish.calibrate import calibrate as fit
    from train.finish.processes import Processes

    in_table = table_options.read()
    examples = read_examples(data, in_table, allow_dropped, None, 0, check_pictures=True)
    judge = Judge.load(run)
    if judge.folder is None:
        raise CustosError(f"{run}: an untrained judge has no folder for a calibration")
    judge.calibration = None
    fitted = fit(judge, examples, Processes(), judge.folder)
    if fitted is None:
        raise CustosError(f"{data}: no rubric could be calibrated; see above")
    for key, calibration in fitted.rubrics.items():
        held_out = fitted.held_out.get(key)
        questions = len(held_out.confidence) if held_out else 0
        typer.echo(
            f"{key}: {calibration.n} rows, {questions} questions; negative log-likelihood "
            f"{calibration.nll_before:.3f} before, {calibration.nll_after:.3f} after"
        )
    typer.echo(f"calibration: {judge.folder / CALIBRATION_FILE}")
