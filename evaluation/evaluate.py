"""A judge measured on labelled examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evaluation.declared_labels import check_labels
from evaluation.people.alternative import EPSILON
from evaluation.report.report import build_report
from evaluation.unscored import check_scored
from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.resolve import RequestT
from judging.types import LabelledExample, Verdict
from judging.verdicts.build import before_calibration


class RequestResolver(Protocol):
    """Judge, on this machine or behind a service, that completes a request before it grades it."""

    name: str

    def resolve(self, request: RequestT, /) -> RequestT:
        """Return a request with the modes in which the judge will grade it."""
        ...


def report_verdicts(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    *,
    is_calibrated: bool,
    seen: Mapping[str, Any] | None,
    seconds: float | None,
    command: str,
    references: Mapping[str, Sequence[Verdict]],
    dataset_sha256: str | None = None,
    risk: float | None = None,
    drawn: Mapping[str, Sequence[Sequence[str | None]]] | None = None,
    epsilon: float = EPSILON,
    family: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Report how far a judge's verdicts agree with people.

    Args:
        examples: Human-labelled examples, as :func:`resolve_examples` returns them.
        verdicts: One verdict per example.
        is_calibrated: Whether the judge has a calibration; if so, figures before it are added.
        seen: What is known of the judge and this data (:func:`evaluation.seen_data.seen_data`).
        seconds: Time that they took; ``None`` where it is not known.
        command: The command as typed.
        references: Other judges' verdicts on the same examples, by name, to set beside its own.
        dataset_sha256: Hash of the file that the examples came from.
        risk: Share of wrong verdicts among those that need no review, as the requests stated it.
        drawn: Labels that judges gave when they were drawn anew: name, example, run.
        epsilon: Margin of the alternative annotator test.
        family: Family of the judge's backbone, as :func:`evaluation.ranking.favour.family_of` says.
        seed: Seed of the intervals.

    Returns:
        The report; see :func:`evaluation.report.report.build_report`.

    Raises:
        NothingScored: If no row got a label.
    """
    check_scored(verdicts)
    uncalibrated = None
    if is_calibrated:
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
        seen=seen,
        risk=risk,
        drawn=drawn,
        epsilon=epsilon,
        family=family,
        seed=seed,
    )


def resolve_examples(
    judge: RequestResolver, examples: Sequence[LabelledExample]
) -> list[LabelledExample]:
    """Return examples as a judge takes them; those that it refuses are unchanged.

    Raises:
        CustosError: If people gave labels that the judge's rubrics do not declare.
    """
    resolved = [_resolved(judge, example) for example in examples]
    check_labels(resolved, f"judge '{judge.name}'")
    return resolved


def at_risk(examples: Sequence[LabelledExample], risk: float | None) -> list[LabelledExample]:
    """Return examples whose requests state a risk; ``None`` leaves them as they are."""
    if risk is None:
        return list(examples)
    return [example.model_copy(update={"risk": risk}) for example in examples]


def _resolved(judge: RequestResolver, example: LabelledExample) -> LabelledExample:
    """Return an example as the judge takes it; unchanged if the judge refuses it."""
    try:
        return judge.resolve(example)
    except CustosError:
        return example  # The verdict says why.


def grade_examples(
    judge: Judge, examples: Sequence[LabelledExample], *, progress: bool = True
) -> list[Verdict]:
    """Grade the requests of labelled examples, which hold no label, in :func:`grading_order`.

    Args:
        judge: Judge that grades them.
        examples: Examples to grade.
        progress: Show a progress bar on standard error.
    """
    order = grading_order(examples)
    requests = [examples[i].request() for i in order]
    graded = zip(order, judge.grade(requests, progress=progress), strict=True)
    return [verdict for _, verdict in sorted(graded, key=lambda pair: pair[0])]


def grading_order(examples: Sequence[LabelledExample]) -> list[int]:
    """Return the indices of examples with those on one question together: it is read once."""
    return sorted(range(len(examples)), key=lambda index: examples[index].question)
