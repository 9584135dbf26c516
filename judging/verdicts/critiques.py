"""Scores of critiques, which are rewards in training: how probable the right label is after them.

The verdict after a critique holds, for every order of a pair, the probability of every label before
any calibration. So the reward is exact, and the same from a judge in this process and from a
service.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from judging.errors import CustosError, FieldError
from judging.labels import log_probabilities
from judging.tasks import get_task
from judging.tasks.base import CritiqueFormat
from judging.types import FAILURES, MAX_CRITIQUE_TOKENS, AnyJudge, LabelledExample, Verdict
from judging.verdicts.build import pass_labels


@dataclass(frozen=True)
class CritiqueScore:
    """Score of a critique."""

    logprobs: tuple[float, ...]
    """Log-probability of the right label among all labels, for each order of the responses."""
    flips: bool
    """True if the two orders of the responses lead to different labels."""
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
