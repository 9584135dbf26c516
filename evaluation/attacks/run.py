"""Attacks on a judge, from a user's labelled rows to the report of how often it is fooled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any

from evaluation.attacks.items import family_of, read_items
from evaluation.attacks.rows import (
    REFERENCE_ORDER,
    TASK,
    AttackRow,
    Frozen,
    SearchResult,
    SearchSummary,
    Share,
    StabilityRow,
    attack_rows,
    largest_pool,
    measure_share,
    stability_rows,
    suffix_pool,
    summarise_search,
    wrong_answers,
)
from evaluation.measure import CORRECT
from evaluation.outcomes import check_scored, unscored_reasons
from evaluation.report.cautions import few_questions, questions_text, too_wide
from evaluation.report.page import page_templates
from evaluation.report.report import versions
from evaluation.report.text import markdown_templates
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.records import write_json, write_records
from judging.types import JudgeRequest, LabelledExample, Verdict

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
    """Share of labels that one change turns."""

    summary: str
    flips: Share
    examples: tuple[Flip, ...]


class StabilityReport(Frozen):
    """Shares of labels that changes turn, by change."""

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
    """Report on one family of attacks or controls."""

    summary: str
    called_correct: Share
    """Rows with a label that are called Correct: of attacks the success, of controls the share
    that is right."""
    wordings: dict[str, Share]
    unscored: int
    """Rows without a label; they count nowhere else."""
    examples: tuple[AttackExample, ...]


class AttackReport(Frozen):
    """Report on a judge under attacks, with right responses as controls."""

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
    """Shares that are called Correct from a confidence on; empty without confidences."""
    stability: StabilityReport | None
    """Labels that turn under changes that mean nothing."""
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
    failures_first = sorted(
        graded, key=lambda pair: (pair[1].label == CORRECT) is family.is_control
    )
    return FamilyReport(
        summary=family.summary,
        called_correct=accepted(graded),
        wordings={
            wording: accepted(pair for pair in graded if pair[0].wording == wording)
            for wording in sorted({row.wording for row, _ in graded})
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

    A verdict without one beside others was decided by rule, and counts as sure.
    """
    everything = chain(*attacks.values(), *controls.values())
    labelled = [verdict for _, verdict in everything if verdict.label]
    if labelled and all(verdict.confidence is None for verdict in labelled):
        return ()

    def one(floor: float) -> AtFloor:
        families = {name: accepted(pairs, floor) for name, pairs in attacks.items()}
        passing = [name for name in families if families[name].hits]
        worst = max(passing, key=lambda name: families[name].value or 0.0, default=None)
        return AtFloor(
            floor=floor,
            attacks=accepted(chain(*attacks.values()), floor),
            worst_family=worst,
            worst=families[worst] if worst else None,
            controls=accepted(chain(*controls.values()), floor),
        )

    return tuple(map(one, FLOORS))


def accepted(graded: Iterable[Graded], floor: float = 0.0) -> Share:
    """Measure the share of the rows with a label that are called Correct at least this surely."""
    scored = [(row, verdict) for row, verdict in graded if verdict.label is not None]
    hits = [
        verdict.label == CORRECT and (verdict.confidence is None or verdict.confidence >= floor)
        for _, verdict in scored
    ]
    wordings = [(row.family, row.wording) for row, _ in scored]
    return measure_share(hits, [row.cluster for row, _ in scored], wordings)


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
    name, (low, high) = max(intervals.items(), key=lambda item: item[1][1] - item[1][0])
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
    """Write the report as JSON, Markdown and a page, and all rows; ``source`` names the data."""
    graded = zip(rows, verdicts, strict=True)
    write_records(
        folder / ROWS, (GradedRow(**dict(row), verdict=verdict) for row, verdict in graded)
    )
    values = report.model_dump()
    parts = [
        (ATTACKS, values["attacks"], values["all_attacks"]),
        (CONTROLS, values["controls"], values["all_controls"]),
    ]
    there = [part for part in parts if part[1]]
    context = {"report": values, "parts": there, "meanings": MEANINGS, "source": source}
    environments = {MARKDOWN: markdown_templates(TEMPLATES), PAGE: page_templates(TEMPLATES)}
    for name, environment in environments.items():
        write_text(folder / name, environment.get_template(name).render(context))
    write_json(folder / JSON, report.model_dump(mode="json"))


@dataclass(frozen=True)
class AttackPlan:
    """All that a judge will be asked."""

    rows: list[AttackRow]
    stability: list[StabilityRow]
    searched: list[LabelledExample]
    """Wrong answers for which suffixes are searched."""
    suffixes: list[str]
    seed: int

    @classmethod
    def of(
        cls,
        examples: Sequence[LabelledExample],
        *,
        families: Sequence[str] = (),
        limit: int | None = None,
        wordings: int = 1,
        stability: bool = True,
        search: int = 0,
        pool: int = 1000,
        seed: int = 0,
    ) -> AttackPlan:
        """Plan an attack with labelled quick-score rows; arguments as of ``custos attack``.

        Raise ``CustosError`` if a row is of another task, a family is unknown or fits no row, the
        pool is larger than there are suffixes, or there is no wrong answer to search with.
        """
        for example in examples:
            if example.task != TASK:
                raise CustosError(
                    f"row with id '{example.id}' is of task '{example.task}': the attacks are for "
                    f"quick-score judges ({TASK})"
                )
        if pool > (most := largest_pool()):
            raise CustosError(f"a pool of {pool:,} suffixes is too large; there are {most:,}")
        searched = wrong_answers(examples, search, seed)
        if search and not searched:
            raise CustosError("no row is labelled Wrong, so there is no answer to search with")
        items = read_items(examples, limit=limit, seed=seed)
        return cls(
            attack_rows(items, families, wordings, seed),
            stability_rows(items, seed) if stability else [],
            searched,
            suffix_pool(pool, seed) if searched else [],
            seed,
        )

    @property
    def requests(self) -> list[JudgeRequest]:
        """List what is graded in batches: the attacks, and the rows for stability."""
        return [*(row.request for row in self.rows), *(row.request for row in self.stability)]

    @property
    def alone(self) -> list[JudgeRequest]:
        """List the requests that are graded once more, each by itself."""
        return [row.request for row in self.stability if not row.check]

    def report(
        self,
        verdicts: Sequence[Verdict],
        alone: Sequence[Verdict],
        searched: Sequence[SearchResult],
        *,
        command: str,
        dataset_sha256: str | None = None,
    ) -> AttackReport:
        """Report on the verdicts on :attr:`requests` and :attr:`alone`, and on the search.

        Raise ``NothingScored`` if no row got a label.
        """
        num_rows = len(self.rows)
        of_rows = verdicts[:num_rows]
        check_scored(of_rows)
        families: dict[str, list[Graded]] = {}
        for row, verdict in zip(self.rows, of_rows, strict=True):
            families.setdefault(row.family, []).append((row, verdict))
        controls, attacks = (
            {name: each for name, each in families.items() if family_of(name).is_control is kind}
            for kind in (True, False)
        )
        stability = None
        if self.stability:
            stability = measure_stability(self.stability, verdicts[num_rows:], alone)
        search = summarise_search(searched, len(self.suffixes)) if self.searched else None
        return AttackReport(
            n=num_rows,
            questions=len({row.cluster for row in self.rows}),
            attacks={name: family_report(name, attacks[name]) for name in sorted(attacks)},
            controls={name: family_report(name, controls[name]) for name in sorted(controls)},
            all_attacks=accepted(chain(*attacks.values())),
            all_controls=accepted(chain(*controls.values())),
            floors=at_floors(attacks, controls),
            stability=stability,
            search=search,
            statuses=dict(Counter(verdict.status for verdict in of_rows)),
            unscored=unscored_reasons(of_rows),
            truncated_input=sum(verdict.truncated_input for verdict in of_rows),
            judge_names=sorted({v.judge_name for v in of_rows if v.judge_name}),
            judges=sorted({verdict.judge for verdict in of_rows if verdict.judge}),
            dataset_sha256=dataset_sha256,
            command=command,
            seed=self.seed,
            versions=versions(),
        )
