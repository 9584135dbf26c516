"""The verdict on a judged request, from its passes, or on what a rule decides."""

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

from judging.labels import best_label
from judging.tasks import JudgeTask, Ruling, get_task
from judging.types import JudgeRequest, Pass, Signature, Verdict, score_of, type_of

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
