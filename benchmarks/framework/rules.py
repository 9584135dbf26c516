"""The rules of benchmarks as a grader: no model, the same answer every time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version

from benchmarks.framework.base import BENCHMARKS, Benchmark
from judging.errors import CustosError
from judging.fingerprint import digest
from judging.types import JudgeRequest, LabelledExample, Verdict
from judging.verdicts.notes import thoughts_note

NAME = "rules"
"""What users call the rules where a judge is named."""


class RuleGrader:
    """Grader that labels what a benchmark's rules decide and abstains from all else."""

    name = NAME

    def __init__(self, benchmark: Benchmark) -> None:
        """Take a benchmark's rules.

        Raises:
            CustosError: If it has none.
        """
        if not benchmark.rule_tasks:
            known = ", ".join(each.name for each in BENCHMARKS if each.rule_tasks)
            raise CustosError(f"--judge {NAME}: '{benchmark.name}' has no rules; {known} have some")
        self.benchmark = benchmark

    def fingerprint(self, request: JudgeRequest) -> str:
        """Return a digest of what could change a verdict: benchmark and version."""
        return digest({NAME: self.benchmark.name, "version": version("custos")})

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Yield one verdict per request, in order."""
        return (rule_verdict(self.benchmark, request) for request in requests)


def rule_verdict(benchmark: Benchmark, request: JudgeRequest) -> Verdict:
    """Return the verdict of a benchmark's rules on a request."""
    label = benchmark.rule_label(request)
    if label is None:
        return Verdict(
            id=request.id, status="abstain", label=None, judge=NAME, message="no rule decides this"
        )
    return Verdict(
        id=request.id, status="scored", label=label, judge=NAME, message=thoughts_note(request)
    )


def verdicts_of_rules(examples: Sequence[LabelledExample]) -> list[Verdict] | None:
    """Return the verdicts of the rules that belong to each example's task.

    Returns:
        One verdict per example; ``None`` if no task among them has rules.
    """
    with_rules = {task: each for each in BENCHMARKS for task in each.rule_tasks}
    if not any(example.task in with_rules for example in examples):
        return None
    return [
        rule_verdict(with_rules[example.task], example)
        if example.task in with_rules
        else Verdict(id=example.id, status="abstain", label=None, judge=NAME)
        for example in examples
    ]
