"""The report of an attack: how often each family and wording is called Correct, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

from evaluation.attacks.items import family_of
from evaluation.attacks.rows import (
    REFERENCE_ORDER,
    AttackRow,
    Frozen,
    SearchSummary,
    Share,
    StabilityRow,
    measure_share,
)
from evaluation.measure import CORRECT
from evaluation.report.cautions import few_questions, questions_text, too_wide
from evaluation.report.markdown import markdown_templates
from evaluation.report.page import page_templates
from judging.files.atomic import write_text
from judging.files.records import write_json, write_records
from judging.types import Verdict

TEMPLATES = Path(__file__).parent / "templates"
JSON, MARKDOWN, PAGE, ROWS = "attacks.json", "attacks.md", "attacks.html", "rows.jsonl"
ATTACKS, CONTROLS = "Attacks", "Controls"
MEANINGS = {
    ATTACKS: "share of wrong responses that the judge accepts; 0 is safe",
    CONTROLS: "share of right responses that the judge accepts; 1 is right",
}
NUM_EXAMPLES = 3
"""Examples of each family in the report; failures of the judge come first."""
ALONE = "alone"
SUMMARIES = {
    "blank_lines": "blank lines around the response",
    "spaces": "spaces around the response",
    "bold": "the response in bold",
    "quote": "the response as a quotation",
    "bullet": "the response as an item of a list",
    REFERENCE_ORDER: "the references in another order",
    ALONE: "the row graded alone, not among others",
}
FLOORS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
Graded = tuple[AttackRow, Verdict]


class GradedRow(AttackRow):
    """A row with the judge's verdict."""

    verdict: Verdict


class Flip(Frozen):
    """A row whose label a change has turned."""

    id: str
    question: str
    response: str
    before: str
    after: str


class StabilityCheck(Frozen):
    """The share of labels that one change turns."""

    summary: str
    flips: Share
    examples: tuple[Flip, ...]


class StabilityReport(Frozen):
    """The share of labels that each change turns."""

    checks: dict[str, StabilityCheck]


class AtFloor(Frozen):
    """Shares of rows that are called Correct with at least one confidence.

    A user who can have the unsure rows read by people trades controls that are no longer accepted
    for attacks that no longer pass.
    """

    floor: float
    attacks: Share
    worst_family: str | None
    """Attack that passes most often; ``None`` where none passes."""
    worst: Share | None
    controls: Share


class AttackExample(Frozen):
    """One row with the judge's verdict."""

    id: str
    wording: str
    question: str
    references: tuple[str, ...]
    response: str
    label: str | None
    confidence: float | None


class FamilyReport(Frozen):
    """The report on one family of attacks."""

    summary: str
    called_correct: Share
    """Rows with a label that are called Correct: of attacks the success, of controls the share
    that is right."""
    wordings: dict[str, Share]
    unscored: int
    """Rows without a label; they count nowhere else."""
    examples: tuple[AttackExample, ...]


class AttackReport(Frozen):
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
        """List all main figures, by the title of their part of the report and by name."""
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


def family_report(name: str, graded: Sequence[Graded]) -> FamilyReport:
    """Report on the rows of a family; failures of the judge come first."""
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
        examples=tuple(
            AttackExample(
                id=row.request.id,
                wording=row.wording,
                question=row.request.question,
                references=row.request.references,
                response=row.request.responses[0],
                label=verdict.label,
                confidence=verdict.confidence,
            )
            for row, verdict in failures_first[:NUM_EXAMPLES]
        ),
    )


def at_floors(
    attacks: Mapping[str, Sequence[Graded]], controls: Mapping[str, Sequence[Graded]]
) -> tuple[AtFloor, ...]:
    """Measure the shares of families at each of ``FLOORS``; none if no verdict has a confidence.

    Verdicts without one beside others were decided by rule, and count as sure.
    """
    everything = [pair for family in (*attacks.values(), *controls.values()) for pair in family]
    labelled = [verdict for _, verdict in everything if verdict.label]
    if labelled and all(verdict.confidence is None for verdict in labelled):
        return ()

    def one(floor: float) -> AtFloor:
        families = {name: accepted(pairs, floor) for name, pairs in attacks.items()}
        passing = [name for name in families if families[name].hits]
        worst = max(passing, key=lambda name: families[name].value or 0.0, default=None)
        return AtFloor(
            floor=floor,
            attacks=accepted([pair for pairs in attacks.values() for pair in pairs], floor),
            worst_family=worst,
            worst=families[worst] if worst else None,
            controls=accepted([pair for pairs in controls.values() for pair in pairs], floor),
        )

    return tuple(map(one, FLOORS))


def accepted(graded: Iterable[Graded], floor: float = 0.0) -> Share:
    """Measure the share of the rows with a label that are called Correct at least this surely."""
    scored = [(row, verdict) for row, verdict in graded if verdict.label is not None]
    return measure_share(
        [
            verdict.label == CORRECT
            and (1.0 if verdict.confidence is None else verdict.confidence) >= floor
            for _, verdict in scored
        ],
        [row.cluster for row, _ in scored],
        [(row.family, row.wording) for row, _ in scored],
    )


def measure_stability(
    rows: Sequence[StabilityRow], verdicts: Sequence[Verdict], alone: Sequence[Verdict]
) -> StabilityReport:
    """Count the labels that changes turn; ``alone`` are verdicts on unchanged rows, one by one."""
    flips: dict[str, list[tuple[str, Flip]]] = {check: [] for check in SUMMARIES}
    alone_verdicts = iter(alone)
    original = Verdict(status="abstain")
    for row, verdict in zip(rows, verdicts, strict=True):
        if not row.check:
            original, verdict = verdict, next(alone_verdicts)
        if original.label is not None and verdict.label is not None:
            flip = Flip(
                id=row.request.id,
                question=row.request.question,
                response=row.request.responses[0],
                before=original.label,
                after=verdict.label,
            )
            flips[row.check or ALONE].append((row.cluster, flip))
    checks = {}
    for check, found in flips.items():
        if found:
            turned = [flip.before != flip.after for _, flip in found]
            checks[check] = StabilityCheck(
                summary=SUMMARIES[check],
                flips=measure_share(turned, [cluster for cluster, _ in found]),
                examples=tuple(flip for _, flip in compress(found, turned))[:NUM_EXAMPLES],
            )
    return StabilityReport(checks=checks)


def attack_caution(num_questions: int, shares: Mapping[str, Share]) -> str | None:
    """Word the caution on an attack with too few questions; ``None`` if they suffice.

    It is on the share with the widest interval.
    """
    intervals = {
        name: (rate.low, rate.high)
        for name, rate in shares.items()
        if rate.low is not None and rate.high is not None
    }
    if not intervals:
        return None
    name, (low, high) = max(intervals.items(), key=lambda share: share[1][1] - share[1][0])
    # The share may be of fewer rows than there are questions, as that of the suffix search is.
    counted = questions_text(min(num_questions, shares[name].n))
    if shares[name].wordings > 1:
        counted = f"{shares[name].wordings} wordings on {counted}"
    return too_wide(counted, f"the share of '{name}'", low, high) or few_questions(num_questions)


def write_attacks(
    report: AttackReport,
    rows: Sequence[AttackRow],
    verdicts: Sequence[Verdict],
    source: str,
    folder: Path,
) -> None:
    """Write ``attacks.json``, ``attacks.md``, ``attacks.html`` and ``rows.jsonl`` to a folder."""
    graded = zip(rows, verdicts, strict=True)
    write_records(
        folder / ROWS, (GradedRow(**dict(row), verdict=verdict) for row, verdict in graded)
    )
    write_text(folder / MARKDOWN, render_markdown(report, source))
    write_text(folder / PAGE, render_page(report, source))
    write_json(folder / JSON, report.model_dump(mode="json"))


def render_markdown(report: AttackReport, source: str) -> str:
    """Lay a report out as Markdown. ``source`` names the data."""
    template = markdown_templates(TEMPLATES).get_template(MARKDOWN)
    return template.render(source=source, **_context(report))


def render_page(report: AttackReport, source: str) -> str:
    """Lay a report out as an HTML page that needs no other file. ``source`` names the data."""
    template = page_templates(TEMPLATES).get_template(PAGE)
    return template.render(source=source, meanings=MEANINGS, **_context(report))


def _context(report: AttackReport) -> dict[str, Any]:
    """Collect what both templates use; attacks and controls only where there are some."""
    values = report.model_dump()
    parts = [
        (ATTACKS, values["attacks"], values["all_attacks"]),
        (CONTROLS, values["controls"], values["all_controls"]),
    ]
    return {"report": values, "parts": [part for part in parts if part[1]]}
