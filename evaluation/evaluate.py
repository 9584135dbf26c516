"""A judge measured on labelled examples, with its untrained backbone beside it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.declared_labels import check_labels
from evaluation.report.report import build_report
from evaluation.seen_data import seen_data
from evaluation.unscored import check_scored
from judging.errors import CustosError
from judging.judge import Judge
from judging.types import LabelledExample, Verdict
from judging.verdicts.build import before_calibration


def evaluate_judge(
    judge: Judge,
    examples: Sequence[LabelledExample],
    *,
    command: str,
    zero_shot: bool = True,
    references: Mapping[str, Sequence[Verdict]] | None = None,
    dataset_sha256: str | None = None,
    risk: float | None = None,
    seed: int = 0,
) -> tuple[dict[str, Any], list[Verdict]]:
    """Grade examples and report how far the judge agrees with people.

    Args:
        judge: Judge to measure. The time in the report is that of its calibrated pass.
        examples: Human-labelled examples.
        command: The command as typed, for the report.
        zero_shot: Whether to grade with the judge's untrained backbone too.
        references: Other judges' verdicts on the same examples, by name, to set beside its own.
        dataset_sha256: Hash of the file that the examples came from.
        risk: Share of wrong verdicts among those that need no review, to keep and to measure.
        seed: Seed of the intervals.

    Returns:
        The report (see :func:`evaluation.report.report.build_report`) and the judge's verdicts, in
        the order of the examples.

    Raises:
        CustosError: If people gave labels that the judge's rubrics do not declare (``Partial`` to
            an example with one reference, for a judge of alternatives).
        NothingScored: If no row got a label.
    """
    examples = resolve_examples(judge, examples)
    started = time.perf_counter()
    verdicts = grade_examples(judge, [_at_risk(example, risk) for example in examples])
    seconds = time.perf_counter() - started
    check_scored(verdicts)
    beside = dict(references or {})
    if zero_shot and judge.card is not None:
        beside["zero_shot"] = grade_examples(judge.load_untrained(), examples)
    report = report_verdicts(
        judge,
        examples,
        verdicts,
        seconds=seconds,
        command=command,
        references=beside,
        dataset_sha256=dataset_sha256,
        risk=risk,
        seed=seed,
    )
    return report, verdicts


def report_verdicts(
    judge: Judge,
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    *,
    seconds: float,
    command: str,
    references: Mapping[str, Sequence[Verdict]],
    dataset_sha256: str | None = None,
    risk: float | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Report how far a judge's verdicts agree with people.

    Args:
        judge: Judge that gave them.
        examples: Human-labelled examples, as :func:`resolve_examples` returns them.
        verdicts: One verdict per example.
        seconds: Time that they took.
        command: As for :func:`evaluate_judge`, like the other arguments.
        references: Other judges' verdicts by name.
        dataset_sha256: Hash of the file.
        risk: Stated risk.
        seed: Seed of the intervals.

    Raises:
        NothingScored: If no row got a label.
    """
    check_scored(verdicts)
    uncalibrated = None
    if judge.calibration:
        uncalibrated = [
            before_calibration(example.request(), verdict)
            for example, verdict in zip(examples, verdicts, strict=True)
        ]
    return build_report(
        examples,
        verdicts,
        seconds=seconds,
        command=command,
        references=references,
        uncalibrated=uncalibrated,
        dataset_sha256=dataset_sha256,
        seen=seen_data(judge.folder, dataset_sha256, examples),
        risk=risk,
        seed=seed,
    )


def resolve_examples(judge: Judge, examples: Sequence[LabelledExample]) -> list[LabelledExample]:
    """Return examples as a judge takes them; those that it refuses are unchanged.

    Raises:
        CustosError: If people gave labels that the judge's rubrics do not declare.
    """
    resolved = [_resolved(judge, example) for example in examples]
    check_labels(resolved, f"judge '{judge.name}'")
    return resolved


def _at_risk(example: LabelledExample, risk: float | None) -> LabelledExample:
    return example if risk is None else example.model_copy(update={"risk": risk})


def _resolved(judge: Judge, example: LabelledExample) -> LabelledExample:
    """Return an example as the judge takes it; unchanged if the judge refuses it."""
    try:
        return judge.resolve(example)
    except CustosError:
        return example  # The verdict says why.


def grade_examples(
    judge: Judge, examples: Sequence[LabelledExample], *, progress: bool = True
) -> list[Verdict]:
    """Grade the requests of labelled examples, which hold no label.

    Responses to the same question are graded one after the other, so that the judge reads the
    question once.

    Args:
        judge: Judge that grades them.
        examples: Examples to grade.
        progress: Show a progress bar on standard error.
    """
    order = sorted(range(len(examples)), key=lambda i: examples[i].question)
    requests = [examples[i].request() for i in order]
    graded = zip(order, judge.grade(requests, progress=progress), strict=True)
    return [verdict for _, verdict in sorted(graded, key=lambda pair: pair[0])]
