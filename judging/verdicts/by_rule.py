"""The rules as a judge: verdicts of what they decide."""

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from judging.errors import CustosError
from judging.fingerprint import digest
from judging.tasks import Ruling, get_task
from judging.types import JudgeRequest, Verdict
from judging.verdicts.build import ruled_verdict

RULES_JUDGE = "rules"
"""Name of the rules where users name a judge."""


class RuleGrader:
    """Grader that labels what rules decide, also where they may err, and abstains from all else."""

    name = RULES_JUDGE

    def fingerprint(self, request: JudgeRequest) -> str:
        """Return a digest of what could change a verdict: task and versions."""
        versions = {name: version(name) for name in ("custos", "math-verify")}
        return digest({RULES_JUDGE: request.task, **versions})

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Yield one verdict per request, in order."""
        return map(verdict_of_rules, requests)


def verdict_of_rules(request: JudgeRequest) -> Verdict:
    """Make the verdict of the rules of a request's task; ``abstain`` where they say nothing."""
    try:
        task = get_task(request.task)
        task.check(request)
    except CustosError as error:
        return Verdict.from_error(error, request, judge_name=RULES_JUDGE)
    ruling = task.rule(request)
    if ruling is None:
        label = task.label_by_rule(request)
        ruling = (
            Ruling("abstain", None, "no rule decides this")
            if label is None
            else Ruling("scored", label, "a rule says so, which may err")
        )
    return _verdict(request, ruling)


def certain_verdict(request: JudgeRequest) -> Verdict | None:
    """Return the verdict that rules are certain of; ``None`` if a judge must be asked.

    An empty response is left to the judge, which decides it by rule too.
    """
    ruling = get_task(request.task).rule_if_certain(request)
    return _verdict(request, ruling) if ruling else None


def _verdict(request: JudgeRequest, ruling: Ruling) -> Verdict:
    rubric = get_task(request.task).full_rubric(request)
    return ruled_verdict(request, ruling, judge_name=RULES_JUDGE, rubric=rubric, judge=RULES_JUDGE)
