"""Results of auditing: the label that an independent reader derives, and rows that disagree.

An audit may import this module, the standard library and the record types, and no generator: a
mistake in a generator and a mistake in its audit must be unlikely to coincide.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from judging.types import LabelledExample


class AuditResult(NamedTuple):
    """The outcome of an independent reading of one example."""

    label: str
    """Empty where no single label follows."""
    reason: str


def disagreements(
    examples: Iterable[LabelledExample], read: Callable[[LabelledExample], AuditResult]
) -> dict[int, str]:
    """Return what was read of every row whose audit derives another label, by number."""
    found = {}
    for number, example in enumerate(examples):
        result = read(example)
        if result.label != example.label:
            found[number] = f"{example.label}, read as {result.label}: {result.reason}"
    return found
