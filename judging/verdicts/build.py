"""Makers of verdicts: from the passes of a judged request, or from what a rule decides.

The reward of a critique is how probable the label tree makes the right label after it. The verdict
after a critique holds, for every order of a pair, the probability of every label before any
calibration. So the reward is exact, and the same from a judge in this process and from a service.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, Protocol, Unpack

from judging.errors import CustosError, FieldError
from judging.fingerprint import digest
from judging.labels import best_label, log_probabilities
from judging.tasks import JudgeTask, Ruling, get_task
from judging.tasks.base import CritiqueFormat
from judging.types import (
    FAILURES,
    MAX_CRITIQUE_TOKENS,
    JudgeRequest,
    LabelledExample,
    Pass,
    Signature,
    Verdict,
    score_of,
    type_of,
)

NEAR_TIE = 0.02
"""Two labels of a pair whose probabilities differ by less are called about equally likely."""


def merge_passes(task: JudgeTask, passes: Sequence[Pass]) -> dict[str, float]:
    """Average the posteriors of passes, with swapped ones turned back to the given order."""
    mean = dict.fromkeys(passes[0].posterior, 0.0)
    for record in passes:
        for label, probability in record.posterior.items():
            given_label = task.unswap(label) if record.order == "swapped" else label
            mean[given_label] += probability / len(passes)
    return mean


def pass_labels(task: JudgeTask, passes: Sequence[Pass]) -> list[str]:
    """List the labels that the passes lead to, each in terms of the given order."""
    return [best_label(merge_passes(task, [record])) for record in passes]


def make_verdict(
    request: JudgeRequest,
    task: JudgeTask,
    passes: Sequence[Pass],
    probabilities: Mapping[str, float],
    *,
    label_mass: float,
    posterior: Literal["exact", "approximate"],
    truncated_input: bool,
    note: str | None = None,
    **signature: Unpack[Signature],
) -> Verdict:
    """Make the verdict of a judged request.

    ``probabilities`` are the posterior over full labels, merged over ``passes`` and calibrated;
    ``label_mass`` is the probability inside the label tree, before renormalisation.
    """
    label = best_label(probabilities)
    stated = [record.stated_confidence for record in passes]
    confidences = [confidence for confidence in stated if confidence is not None]
    labels = pass_labels(task, passes)
    is_cut = any(record.finish_reason == "length" for record in passes)
    notes = ["the critique hit its budget"] if is_cut else []
    notes += [note] if note else []
    notes += _tie_notes(labels, probabilities) if task.num_responses == 2 else []
    return Verdict(
        id=request.id,
        status="truncated" if is_cut else "scored",
        label=score_of(label),
        error_type=type_of(label) or None,
        score=task.score(probabilities),
        score_range=task.score_range,
        probabilities=dict(probabilities),
        marginals=_marginals(probabilities),
        confidence=probabilities[label],
        stated_confidence=sum(confidences) / len(confidences) if confidences else None,
        critique=_deciding_critique(task, passes, label),
        label_mass=label_mass,
        posterior=posterior,
        passes=tuple(passes),
        needs_review=len(set(labels)) > 1,
        truncated_input=truncated_input,
        message="; ".join(notes) or None,
        **signature,
    )


def ruled_verdict(request: JudgeRequest, ruling: Ruling, **signature: Unpack[Signature]) -> Verdict:
    """Make the verdict of a request that was decided by rule; ``signature`` names the judge."""
    return Verdict(
        id=request.id,
        status=ruling.status,
        label=score_of(ruling.label) if ruling.label else None,
        error_type=type_of(ruling.label or "") or None,
        score=ruling.score,
        score_range=get_task(request.task).score_range if ruling.score is not None else None,
        message="; ".join(filter(None, [ruling.message, thoughts_note(request)])),
        **signature,
    )


def before_calibration(request: JudgeRequest, verdict: Verdict) -> Verdict:
    """Make a verdict again from its passes, without calibration; unchanged if it has none."""
    if not verdict.passes or verdict.label_mass is None or verdict.posterior is None:
        return verdict
    task = get_task(request.task)
    return make_verdict(
        request,
        task,
        verdict.passes,
        merge_passes(task, verdict.passes),
        label_mass=verdict.label_mass,
        posterior=verdict.posterior,
        truncated_input=verdict.truncated_input,
        judge_name=verdict.judge_name,
        rubric=verdict.rubric,
        judge=verdict.judge,
    )


def disagreement(labels: Sequence[str]) -> str:
    """Say which label each order of a pair led to: first the given order, then the swapped one."""
    given, swapped = labels
    return (
        f"the two orders disagree: the label is {given} with A shown first, {swapped} with B shown "
        "first"
    )


def thoughts_note(request: JudgeRequest) -> str | None:
    """Say that a response was graded without its thoughts, if it has some."""
    if request.answers == request.responses:
        return None
    return "what stands in thinking tags was left out"


def _tie_notes(labels: Sequence[str], probabilities: Mapping[str, float]) -> list[str]:
    """Note that the orders of a pair disagree, or that its two likeliest labels nearly tie."""
    notes = [disagreement(labels)] if len(set(labels)) > 1 else []
    first, second = sorted(probabilities, key=lambda label: -probabilities[label])[:2]
    if probabilities[first] - probabilities[second] < NEAR_TIE:
        notes.append(
            f"{first} ({probabilities[first]:.2f}) and {second} ({probabilities[second]:.2f}) are "
            "about equally likely"
        )
    return notes


def _deciding_critique(task: JudgeTask, passes: Sequence[Pass], label: str) -> str | None:
    """Choose the critique of the pass surest of the label, with the responses as in the request.

    A pass that leads to the label itself goes before one that leads to another.
    """

    def weight(record: Pass) -> tuple[bool, float]:
        posterior = merge_passes(task, [record])
        return best_label(posterior) == label, posterior[label]

    deciding = max(passes, key=weight)
    if deciding.critique is None or deciding.order == "given":
        return deciding.critique
    return task.unswap_text(deciding.critique)


def _marginals(probabilities: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the marginals by score and by error type, for labels that have both."""
    if not any(map(type_of, probabilities)):
        return {}
    marginals: dict[str, dict[str, float]] = {"score": {}, "error_type": {}}
    for label, probability in probabilities.items():
        for name, part in (("score", score_of(label)), ("error_type", type_of(label))):
            if part:
                marginals[name][part] = marginals[name].get(part, 0.0) + probability
    return marginals


RULES = "rules"
"""Name of the rules where users name a judge."""


class RuleGrader:
    """Grader that labels what rules decide, also where they may err, and abstains from all else."""

    name = RULES

    def fingerprint(self, request: JudgeRequest) -> str:
        """Return a digest of what could change a verdict: task and versions."""
        versions = {name: version(name) for name in ("custos", "math-verify")}
        return digest({RULES: request.task, **versions})

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Yield one verdict per request, in order."""
        return map(verdict_of_rules, requests)


def verdict_of_rules(request: JudgeRequest) -> Verdict:
    """Make the verdict of the rules of a request's task; ``abstain`` where they say nothing."""
    try:
        task = get_task(request.task)
        task.check(request)
    except CustosError as error:
        return Verdict.from_error(error, request, judge_name=RULES)
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
    return ruled_verdict(request, ruling, judge_name=RULES, rubric=rubric, judge=RULES)


class AnyJudge(Protocol):
    """Source of verdicts: a judge in this process, or a client of a service."""

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Yield one verdict per request, in order."""
        ...


@dataclass(frozen=True)
class CritiqueScore:
    """The score of a critique."""

    logprobs: tuple[float, ...]
    """Log-probability of the right label among all labels, for each order of the responses."""
    flips: bool
    """The orders lead to different labels."""
    reward: float
    """Mean of ``logprobs``, less the penalty if the orders lead to different labels."""


class CritiqueScorer:
    """Scorer of critiques by the labels that a judge with exact probabilities gives after them.

    A pair is read in both orders; in the swapped one the critique names the responses the other way
    round. If the orders lead to different labels, the critique is worth ``flip_penalty`` less.
    """

    def __init__(self, judge: AnyJudge, flip_penalty: float = 1.0) -> None:
        self.judge, self.flip_penalty = judge, flip_penalty

    def score(
        self, examples: Sequence[LabelledExample], critiques: Sequence[str]
    ) -> list[CritiqueScore | None]:
        """Score one critique per example, without its tags; ``None`` where a rule decides.

        Raises ``CustosError`` if an example cannot be judged, or its task lacks its label.
        """
        requests = [
            example.request().model_copy(
                update={
                    "mode": "critique",
                    "order": "both",
                    "risk": None,
                    "given_critique": critique,
                    "critique_tokens": MAX_CRITIQUE_TOKENS,
                }
            )
            for example, critique in zip(examples, critiques, strict=True)
        ]
        verdicts = self.judge.grade(requests)
        return [
            self.score_of(example, verdict)
            for example, verdict in zip(examples, verdicts, strict=True)
        ]

    def score_of(self, example: LabelledExample, verdict: Verdict) -> CritiqueScore | None:
        """Score what the critiques of a verdict led to; ``None`` if a rule decided.

        Raises ``CustosError`` without exact probabilities, or if they lack the label.
        """
        if verdict.status in FAILURES:
            raise CustosError(f"row '{example.id}': {verdict.message}")
        if not verdict.passes:
            return None
        if verdict.posterior != "exact":
            raise CustosError(f"judge '{verdict.judge_name}' gives no exact probabilities")
        task, logprobs = get_task(example.task), []
        for record in verdict.passes:
            label = task.unswap(example.label) if record.order == "swapped" else example.label
            if label not in record.posterior:
                known = ", ".join(record.posterior)
                raise FieldError("label", f"row '{example.id}': '{label}' is not one of {known}")
            logprobs.append(log_probabilities(record.posterior)[label])
        flips = len(set(pass_labels(task, verdict.passes))) > 1
        reward = sum(logprobs) / len(logprobs) - self.flip_penalty * flips
        return CritiqueScore(tuple(logprobs), flips, reward)


def critique_in(answer: str, form: CritiqueFormat) -> str:
    """Return the critique in an answer: what stands between its tags.

    An answer that was cut has no closing tag. One whose prompt ends with the opening tag has no
    opening tag.
    """
    before, opening, after = answer.partition(form.opening)
    return (after if opening else before).partition(form.closing)[0]
