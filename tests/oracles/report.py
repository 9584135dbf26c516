"""Results of auditing: the label that an independent reader derives, and rows that disagree.

An audit may import this module, the standard library and the record types, and no generator: a
mistake in a generator and a mistake in its audit must be unlikely to coincide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from judging.types import LabelledExample


@dataclass(frozen=True)
class AuditResult:
    """The outcome of an independent reading of one example."""

    label: str
    """Empty where no single label follows."""
    claims: tuple[str, ...]
    """The elements that the response finally claims, as read."""
    reason: str


@dataclass(frozen=True)
class Disagreement:
    """A row whose label is not the one that the audit derives."""

    row: int
    id: str
    label: str
    result: AuditResult

    def __str__(self) -> str:
        return (
            f"row {self.row} ({self.id}): labelled {self.label}, read as "
            f"{self.result.label}: {self.result.reason}"
        )


@dataclass(frozen=True)
class AuditReport:
    """The outcome of auditing many rows."""

    rows: int
    disagreements: tuple[Disagreement, ...]

    @property
    def agreement(self) -> float:
        """Return the share of rows on which label and audit agree; 1 for no rows."""
        return 1 - len(self.disagreements) / self.rows if self.rows else 1.0

    def __str__(self) -> str:
        head = f"{self.rows} rows, {len(self.disagreements)} disagreements"
        return "\n".join([head, *map(str, self.disagreements)])


def audit_rows(
    examples: Iterable[LabelledExample], read: Callable[[LabelledExample], AuditResult]
) -> AuditReport:
    """Audit rows in order; ``read`` audits one, and rows are counted from zero."""
    num_rows, disagreements = 0, []
    for number, example in enumerate(examples):
        num_rows = number + 1
        result = read(example)
        if result.label != example.label:
            disagreements.append(Disagreement(number, example.id, example.label, result))
    return AuditReport(num_rows, tuple(disagreements))
