"""From passes over a request to one verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, Pass, Status, Verdict, score_of, type_of


def merged(task: JudgeTask, passes: Sequence[Pass]) -> dict[str, float]:
    """Mean posterior over the passes, each as if the responses had stood as given."""
    total = dict.fromkeys(passes[0].posterior, 0.0)
    for one in passes:
        for label, probability in one.posterior.items():
            meant = task.unswap(label) if one.order == "swapped" else label
            total[meant] += probability / len(passes)
    return total


def make_verdict(
    request: JudgeRequest,
    task: JudgeTask,
    passes: Sequence[Pass],
    probabilities: Mapping[str, float],
    *,
    label_mass: float,
    posterior: Literal["exact", "approximate"],
    truncated_input: bool,
    judge: str,
) -> Verdict:
    """Verdict of a judged request.

    Args:
        request: What was judged.
        task: Its task.
        passes: One per presentation order.
        probabilities: Posterior over full labels, merged and calibrated.
        label_mass: Probability inside the label tree, before renormalisation.
        posterior: Whether the engine gave the probability of every label.
        truncated_input: Whether a response lost its middle.
        judge: Fingerprint.
    """
    label = best_label(probabilities)
    stated = [one.stated_confidence for one in passes if one.stated_confidence is not None]
    said = {best_label(merged(task, [one])) for one in passes}
    status: Status = "scored"
    if any(one.finish_reason == "length" for one in passes):
        status = "truncated"
    return Verdict(
        id=request.id,
        status=status,
        label=score_of(label),
        error_type=type_of(label) or None,
        score=task.score(probabilities),
        score_range=task.score_range(),
        probabilities=dict(probabilities),
        marginals=_marginals(probabilities),
        confidence=probabilities[label],
        stated_confidence=sum(stated) / len(stated) if stated else None,
        critique=passes[0].critique,
        label_mass=label_mass,
        posterior=posterior,
        passes=tuple(passes),
        needs_review=len(said) > 1,
        truncated_input=truncated_input,
        message="the critique hit its budget" if status == "truncated" else None,
        judge=judge,
    )


def before_calibration(request: JudgeRequest, verdict: Verdict) -> Verdict:
    """The verdict that the same passes give without calibration; one without passes is kept.

    Args:
        request: What was judged.
        verdict: What came of it.
    """
    if not verdict.passes or verdict.label_mass is None or verdict.posterior is None:
        return verdict
    task = get_task(request.task)
    return make_verdict(
        request,
        task,
        verdict.passes,
        merged(task, verdict.passes),
        label_mass=verdict.label_mass,
        posterior=verdict.posterior,
        truncated_input=verdict.truncated_input,
        judge=verdict.judge,
    )


def best_label(probabilities: Mapping[str, float]) -> str:
    """The likeliest score, then its likeliest error type, as decoding from left to right would."""
    scores: dict[str, float] = {}
    for label, probability in probabilities.items():
        scores[score_of(label)] = scores.get(score_of(label), 0.0) + probability
    score = max(scores, key=scores.__getitem__)
    own = [label for label in probabilities if score_of(label) == score]
    return max(own, key=probabilities.__getitem__)


def _marginals(probabilities: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Marginals by score and by error type, for labels that have both."""
    if not any(map(type_of, probabilities)):
        return {}
    marginals: dict[str, dict[str, float]] = {"score": {}, "error_type": {}}
    for label, probability in probabilities.items():
        for name, part in (("score", score_of(label)), ("error_type", type_of(label))):
            if part:
                marginals[name][part] = marginals[name].get(part, 0.0) + probability
    return marginals
