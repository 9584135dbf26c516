"""Judgements as text: a critique, a label and a stated confidence, each in its tags."""

from __future__ import annotations

from dataclasses import dataclass

from data_prep.errors import UnusableText
from judging.errors import CustosError
from judging.tasks import get_task
from judging.tasks.base import last_between
from judging.types import LabelledExample

PAIR_TASK = "truthful-pair"

UNPARSABLE = "unparsable"
EMPTY_CRITIQUE = "empty critique"
CONFIDENCE_OUT_OF_RANGE = "confidence out of range"


@dataclass(frozen=True)
class Judgement:
    """The parts of a judgement on a pair."""

    critique: str
    label: str
    confidence: float


def parse_judgement(text: str) -> Judgement:
    """Read a judgement; where tags occur more than once, the last ones count.

    Raises:
        UnusableText: If a part is missing or is not what it should be.
    """
    task = get_task(PAIR_TASK)
    tags = task.critique
    assert tags
    critique = last_between(text, tags.opening, tags.closing)
    label = task.parse(text, "plain")
    stated = last_between(text, tags.confidence_opening, tags.confidence_closing)
    for name, part in (("critique", critique), ("label", label), ("confidence", stated)):
        if part is None:
            raise UnusableText(UNPARSABLE, f"no {name} in its tags")
    assert critique is not None and label is not None and stated is not None
    if not critique:
        raise UnusableText(EMPTY_CRITIQUE, "nothing between the tags of the critique")
    try:
        confidence = float(stated)
    except ValueError:
        raise UnusableText(UNPARSABLE, f"confidence '{stated:.40}' is no number") from None
    if not 0 <= confidence <= 1:
        raise UnusableText(CONFIDENCE_OUT_OF_RANGE, f"confidence {stated:.40}")
    return Judgement(critique, label, confidence)


def write_judgement(example: LabelledExample) -> str:
    """Write the judgement that an example trains towards, in its tags.

    Raises:
        CustosError: If the example has no critique, no confidence, or a label of another task.
    """
    task = get_task(PAIR_TASK)
    tags = task.critique
    assert tags
    if not example.critique or example.confidence is None:
        raise CustosError(f"row '{example.id}': needs a critique and a confidence")
    return (
        f"{tags.opening}{example.critique}{tags.closing}\n"
        f"{tags.label_opening}{task.target(example)}{tags.label_closing}\n"
        f"{tags.confidence_opening}{example.confidence:.2f}{tags.confidence_closing}"
    )
