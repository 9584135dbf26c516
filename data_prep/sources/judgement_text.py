"""Judgements written out: a critique, a label and a stated confidence, each in its tags."""

from __future__ import annotations

from dataclasses import dataclass

from judging.errors import CustosError
from judging.tasks import get_task
from judging.types import LabelledExample

PAIR_TASK = "truthful-pair"

UNPARSABLE = "unparsable"
EMPTY_CRITIQUE = "empty critique"
CONFIDENCE_OUT_OF_RANGE = "confidence out of range"


@dataclass(frozen=True)
class Judgement:
    """What a text in tags says about a pair."""

    critique: str
    label: str
    confidence: float


class UnusableJudgement(CustosError):
    """A text that is no judgement. ``reason`` is one of a few, the message says more."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def parse_judgement(text: str) -> Judgement:
    """Read a judgement; of tags that occur more than once the last counts.

    Raises:
        UnusableJudgement: If a part is missing or is not what it should be.
    """
    task = get_task(PAIR_TASK)
    form = task.critique
    assert form
    critique = _last_between(text, form.opening, form.closing)
    label = task.parse(text, "plain")
    stated = _last_between(text, form.confidence_opening, form.confidence_closing)
    for name, part in (("critique", critique), ("label", label), ("confidence", stated)):
        if part is None:
            raise UnusableJudgement(UNPARSABLE, f"no {name} in its tags")
    assert critique is not None and label is not None and stated is not None
    if not critique:
        raise UnusableJudgement(EMPTY_CRITIQUE, "nothing between the tags of the critique")
    try:
        confidence = float(stated)
    except ValueError:
        raise UnusableJudgement(UNPARSABLE, f"confidence '{stated:.40}' is no number") from None
    if not 0 <= confidence <= 1:
        raise UnusableJudgement(CONFIDENCE_OUT_OF_RANGE, f"confidence {stated:.40}")
    return Judgement(critique, label, confidence)


def write_judgement(example: LabelledExample) -> str:
    """The judgement that an example trains towards, in its tags.

    Raises:
        CustosError: If the example has no critique, no confidence, or a label of another task.
    """
    task = get_task(PAIR_TASK)
    form = task.critique
    assert form
    if not example.critique or example.confidence is None:
        raise CustosError(f"row '{example.id}': needs a critique and a confidence")
    return (
        f"{form.opening}{example.critique}{form.closing}\n"
        f"{form.label_opening}{task.target(example)}{form.label_closing}\n"
        f"{form.confidence_opening}{example.confidence:.2f}{form.confidence_closing}"
    )


def _last_between(text: str, opening: str, closing: str) -> str | None:
    end = text.rfind(closing)
    start = text.rfind(opening, 0, max(end, 0))
    return None if start < 0 else text[start + len(opening) : end].strip()
