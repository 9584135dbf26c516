"""Thresholds above which verdicts are kept without a person, so that few of them are wrong.

A caller states a risk: the share of wrong verdicts among those kept that it can live with. The
threshold on the confidence that holds it is found by fixed-sequence testing (Angelopoulos et al.,
"Learn then Test", 2021) on held-out verdicts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from judging.types import Verdict

CHANCE = 0.05
"""Largest probability that the error among kept verdicts is above the stated risk."""
START_SHARE = 0.25
"""Share of the verdicts that the strictest tested threshold keeps at least: on a handful, a single
slip of a person would end the tests."""
GRID = 1 / (1 + np.exp(-np.arange(10, -3, -0.25)))
"""Tested thresholds, strictest first, evenly spaced in log-odds. They are fixed in advance, because
thresholds that are chosen by the verdicts would make the tests too kind."""


class HeldOutVerdicts(BaseModel):
    """Confidences of verdicts on rows that their calibration was not fitted on, one a question.

    Answers to one question are right or wrong together. With one row of each question the verdicts
    are independent, so that the binomial test is exact. Questions are drawn in proportion to their
    rows, so that the error is that of a verdict.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    confidence: tuple[float, ...]
    right: tuple[bool, ...]
    """Whether people gave the same label."""

    @model_validator(mode="after")
    def _check_lengths(self) -> HeldOutVerdicts:
        if len(self.confidence) != len(self.right):
            raise ValueError("'confidence' and 'right' differ in length")
        return self

    def threshold(self, risk: float) -> float | None:
        """Return the smallest confidence that is kept at a risk.

        The thresholds are tested from the strictest to the laxest. Each test asks how likely so few
        errors would be if the error among kept verdicts were the risk; the first that is not below
        :data:`CHANCE` ends the tests. Thus the error among verdicts on new questions like these is
        at most the risk, except with a probability of :data:`CHANCE` over the held-out questions.

        Returns:
            ``None`` if no threshold passes: too few questions, or too many errors.
        """
        return _threshold(self.confidence, self.right, risk)


@lru_cache(maxsize=1024)
def _threshold(confidence: tuple[float, ...], right: tuple[bool, ...], risk: float) -> float | None:
    from scipy.special import bdtr  # slow to import, and only needed where a risk is stated

    confidences, wrong = np.array(confidence), ~np.array(right, dtype=bool)
    accepted = None
    for threshold in GRID.tolist():
        kept = confidences >= threshold
        num_kept = int(kept.sum())
        is_testable = (1 - risk) ** num_kept <= CHANCE and num_kept > 0
        if not is_testable or num_kept < START_SHARE * len(confidences):
            continue
        if bdtr(int(wrong[kept].sum()), num_kept, risk) > CHANCE:
            break
        accepted = threshold
    return accepted


def with_review(verdict: Verdict, risk: float, threshold: float | None) -> Verdict:
    """Return a verdict that needs a review if its confidence does not suffice at a stated risk.

    Args:
        verdict: Verdict of a model.
        risk: The stated risk.
        threshold: Smallest confidence that is kept; ``None`` if no verdict may be.
    """
    confidence = verdict.confidence or 0.0
    if threshold is not None and confidence >= threshold:
        return verdict
    reason = (
        f"no confidence is known to keep the error within {risk:g}"
        if threshold is None
        else f"the confidence {confidence:.3f} is below {threshold:.3f}, from which on the error "
        f"is at most {risk:g}"
    )
    message = "; ".join(text for text in (verdict.message, reason) if text)
    return verdict.model_copy(update={"needs_review": True, "message": message})
