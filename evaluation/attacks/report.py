"""The report of an attack: how often each family and wording is called Correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from evaluation.attacks.families import family_of
from evaluation.attacks.floors import AtFloor, Graded, accepted, at_floors
from evaluation.attacks.rows import AttackRow
from evaluation.attacks.search import SearchSummary
from evaluation.attacks.shares import Share
from evaluation.attacks.stability import StabilityReport
from evaluation.measure import CORRECT
from evaluation.report.report import versions
from evaluation.unscored import check_scored, unscored_reasons
from judging.types import Verdict

NUM_EXAMPLES = 3
"""Examples of each family in the report; failures of the judge come first."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class AttackExample(_Part):
    """One row with the judge's verdict."""

    id: str
    wording: str
    question: str
    references: tuple[str, ...]
    response: str
    label: str | None
    confidence: float | None


class FamilyReport(_Part):
    """The report on one family of attacks."""

    summary: str
    called_correct: Share
    """Rows with a label that are called Correct: of attacks the success, of controls the share
    that is right."""
    wordings: dict[str, Share]
    unscored: int
    """Rows without a label; they count nowhere else."""
    examples: tuple[AttackExample, ...]


class AttackReport(_Part):
    """The report on a judge under attacks, with right responses as controls."""

    n: int
    """Number of rows."""
    questions: int
    """Number of questions (or groups) that they belong to."""
    attacks: dict[str, FamilyReport]
    """Families of wrong responses by name. None of these should be called Correct."""
    controls: dict[str, FamilyReport]
    """Families of right responses by name. All of these should be called Correct."""
    all_attacks: Share
    all_controls: Share
    floors: tuple[AtFloor, ...]
    """What is accepted if Correct counts only from a confidence on; empty without confidences."""
    stability: StabilityReport | None
    """Whether changes that mean nothing change the label."""
    search: SearchSummary | None
    """Suffixes that turn wrong answers into Correct."""
    statuses: dict[str, int]
    unscored: list[dict[str, Any]]
    """Why rows have no label, the most frequent reason first."""
    truncated_input: int
    judge_names: list[str]
    judges: list[str]
    """Fingerprints of everything that could change a verdict."""
    dataset_sha256: str | None
    command: str
    seed: int
    versions: dict[str, str]

    def shares_by_part(self) -> dict[str, dict[str, Share]]:
        """Return all main figures, by the title of their part of the report and by name."""
        parts = {
            f"{kind} called Correct": {
                **{name: family.called_correct for name, family in families.items()},
                f"all {kind}": total,
            }
            for kind, families, total in (
                ("attacks", self.attacks, self.all_attacks),
                ("controls", self.controls, self.all_controls),
            )
            if families
        }
        if self.stability:
            checks = self.stability.checks.values()
            parts["labels turned by"] = {check.summary: check.flips for check in checks}
        if self.search:
            parts["wrong answers turned by"] = {
                f"one of {self.search.pool:,} suffixes": self.search.turned
            }
        return parts


def build_report(
    rows: Sequence[AttackRow],
    verdicts: Sequence[Verdict],
    *,
    command: str,
    dataset_sha256: str | None = None,
    seed: int = 0,
    stability: StabilityReport | None = None,
    search: SearchSummary | None = None,
) -> AttackReport:
    """Measure how often a judge calls the rows of an attack Correct.

    Args:
        rows: Rows of :func:`evaluation.attacks.rows.attack_rows`.
        verdicts: The judge's verdicts on them, one per row in the same order.
        command: The command that repeats this report.
        dataset_sha256: Hash of the data file.
        seed: Seed with which the rows were made.
        stability: Report on changes that mean nothing.
        search: Report on suffixes.

    Raises:
        NothingScored: If no row got a label.
    """
    check_scored(verdicts)
    graded = list(zip(rows, verdicts, strict=True))
    families: dict[str, list[Graded]] = {}
    for row, verdict in graded:
        families.setdefault(row.family, []).append((row, verdict))
    controls = {name: pairs for name, pairs in families.items() if family_of(name).is_control}
    attacks = {name: pairs for name, pairs in families.items() if name not in controls}
    return AttackReport(
        n=len(rows),
        questions=len({row.cluster for row in rows}),
        attacks={name: _family_report(name, attacks[name]) for name in sorted(attacks)},
        controls={name: _family_report(name, controls[name]) for name in sorted(controls)},
        all_attacks=accepted(pair for pairs in attacks.values() for pair in pairs),
        all_controls=accepted(pair for pairs in controls.values() for pair in pairs),
        floors=at_floors(attacks, controls),
        stability=stability,
        search=search,
        statuses=dict(Counter(verdict.status for verdict in verdicts)),
        unscored=unscored_reasons(verdicts),
        truncated_input=sum(verdict.truncated_input for verdict in verdicts),
        judge_names=sorted({v.judge_name for v in verdicts if v.judge_name}),
        judges=sorted({verdict.judge for verdict in verdicts if verdict.judge}),
        dataset_sha256=dataset_sha256,
        command=command,
        seed=seed,
        versions=versions(),
    )


def _family_report(name: str, graded: Sequence[Graded]) -> FamilyReport:
    family = family_of(name)
    wordings = sorted({row.wording for row, _ in graded})
    failures_first = sorted(
        graded, key=lambda pair: (pair[1].label == CORRECT) is family.is_control
    )
    return FamilyReport(
        summary=family.summary,
        called_correct=accepted(graded),
        wordings={
            wording: accepted(pair for pair in graded if pair[0].wording == wording)
            for wording in wordings
        },
        unscored=sum(verdict.label is None for _, verdict in graded),
        examples=tuple(_example(*pair) for pair in failures_first[:NUM_EXAMPLES]),
    )


def _example(row: AttackRow, verdict: Verdict) -> AttackExample:
    return AttackExample(
        id=row.request.id,
        wording=row.wording,
        question=row.request.question,
        references=row.request.references,
        response=row.request.responses[0],
        label=verdict.label,
        confidence=verdict.confidence,
    )
