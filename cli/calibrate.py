"""``custos calibrate``: confidences and thresholds of a judge, fitted on labelled rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.measuring import read_examples
from cli.shared.options import with_groups
from cli.shared.screen import counting_bar
from cli.shared.tables import TABLE_FORMATS, AllowDropped, TableOptions
from clients.kept_verdicts import request_key
from judging.errors import CustosError, errors_at
from judging.files.kept_work import KeptFile, KeptLine, Origin, locked
from judging.judge import CALIBRATION_FILE, Judge
from judging.scoring.ask_model import WINDOW
from judging.tasks import get_task
from judging.types import LabelledExample


class _Scores(KeptLine):
    """How the judge scored a row."""

    row: int
    logprobs: tuple[float, ...]
    """Log-probabilities of the labels of the row's rubric."""

    @property
    def origin(self) -> Origin:
        return self.row, self.key


@with_groups
def calibrate(
    run: str,
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

    Scores are kept in the folder while the command runs. If it is stopped, the same command
    continues where it stopped.

    Example: custos calibrate runs/mine --data data/mine/cal.jsonl

    Options:
        run: Run folder or shipped judge.
    """
    from train.finish.grading import Processes, fit_calibrations, rows_to_score
    from train.rows.rows import check_readable

    asked = (table_options.read(), allow_dropped, None, 0)
    examples = read_examples(data, *asked, check_pictures=True)
    judge = Judge.load(run)
    if judge.folder is None:
        raise CustosError(f"{run}: an untrained judge has no folder for a calibration")
    judge.calibration = None
    resolved = []
    for example in examples:
        with errors_at(f"{data}: row '{example.id}'"):
            resolved.append(judge.resolve(example))
            get_task(example.task).target(resolved[-1])
    rows = rows_to_score(judge, resolved, Processes())
    if not rows:
        raise CustosError(f"{data}: no rubric can be calibrated; see above")
    check_readable(rows, judge.encoder, str(data))
    path = judge.folder / CALIBRATION_FILE
    with locked(path):
        kept = KeptFile(path.with_name(f"{path.name}.partial"), _Scores)
        logprobs = _score(kept, judge, rows)
        fitted = fit_calibrations(judge, rows, logprobs, Processes(), judge.folder)
        kept.remove()
    for key, calibration in fitted.rubrics.items():
        held_out = fitted.held_out.get(key)
        questions = len(held_out.confidence) if held_out else 0
        typer.echo(
            f"{key}: {calibration.n} rows, {questions} questions; negative log-likelihood "
            f"{calibration.nll_before:.3f} before, {calibration.nll_after:.3f} after"
        )
    typer.echo(f"calibration: {path}")


def _score(
    kept: KeptFile[_Scores], judge: Judge, rows: Sequence[LabelledExample]
) -> list[tuple[float, ...]]:
    """Score the rows that have no scores in the file yet, behind a progress bar.

    The result has the log-probabilities of each row's labels, in the order of the rows.
    """
    from evaluation.report.evaluate import grading_order
    from train.finish.grading import score_rows

    order = grading_order(rows)

    def origin(index: int) -> Origin:
        return index, request_key(judge, rows[index].request())

    def score(indices: Sequence[int]) -> Iterator[_Scores]:
        scores = score_rows(judge, [rows[index] for index in indices])
        for index, logprobs in zip(indices, scores, strict=True):
            row, key = origin(index)
            yield _Scores(row=row, key=key, logprobs=tuple(logprobs))

    with counting_bar("calibrating", len(rows)) as show:
        for num_scored in kept.fill(lambda: order, origin, score, batch=WINDOW):
            show(num_scored)
    return [line.logprobs for line in sorted(kept.lines(), key=lambda line: line.row)]
