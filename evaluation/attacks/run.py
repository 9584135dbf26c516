"""Attacks on a judge, from a user's labelled rows to the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.attacks.items import family_of, read_items
from evaluation.attacks.report import (
    AttackReport,
    Graded,
    accepted,
    at_floors,
    family_report,
    measure_stability,
)
from evaluation.attacks.rows import (
    AttackRow,
    SearchResult,
    StabilityRow,
    SuffixSearch,
    attack_rows,
    check_task,
    largest_pool,
    stability_rows,
    suffix_pool,
    summarise_search,
    wrong_answers,
)
from evaluation.outcomes import check_scored, unscored_reasons
from evaluation.report.report import versions
from judging.errors import CustosError
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample, Verdict


@dataclass(frozen=True)
class AttackOptions:
    """The families, the numbers of rows and the seed of an attack."""

    families: tuple[str, ...] = ()
    """Names of families; empty for all."""
    limit: int | None = None
    """Number of questions to draw; ``None`` for all."""
    wordings: int = 1
    """Wordings of each family to draw for each question."""
    stability: bool = True
    """Also check that changes that mean nothing keep the label."""
    search: int = 0
    """Number of wrong answers for which suffixes are searched."""
    pool: int = 1000
    """Number of suffixes to try for each of them."""
    seed: int = 0
    """Seed of all draws."""


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
    def of(cls, examples: Sequence[LabelledExample], options: AttackOptions) -> AttackPlan:
        """Plan an attack with labelled quick-score rows.

        Families use their questions and references, checks of stability their responses, and the
        search the responses that people call wrong. Raise ``CustosError`` if a row is of another
        task, a family is unknown or fits no row, the pool is larger than there are suffixes, or
        there is no wrong answer to search with.
        """
        check_task(examples)
        if options.pool > largest_pool():
            raise CustosError(
                f"a pool of {options.pool:,} suffixes is too large; there are {largest_pool():,}"
            )
        searched = wrong_answers(examples, options.search, options.seed)
        if options.search and not searched:
            raise CustosError("no row is labelled Wrong, so there is no answer to search with")
        items = read_items(examples, limit=options.limit, seed=options.seed)
        return cls(
            attack_rows(items, options.families, options.wordings, options.seed),
            stability_rows(items, options.seed) if options.stability else [],
            searched,
            suffix_pool(options.pool, options.seed) if searched else [],
            options.seed,
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
            all_attacks=accepted(pair for pairs in attacks.values() for pair in pairs),
            all_controls=accepted(pair for pairs in controls.values() for pair in pairs),
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


def run_attacks(
    judge: Judge,
    examples: Sequence[LabelledExample],
    options: AttackOptions | None = None,
    *,
    command: str = "",
    dataset_sha256: str | None = None,
    progress: bool = False,
) -> AttackReport:
    """Attack a judge of ``hieval-qs`` and report how often it is fooled.

    By default, one wording of every family is made for each question. Raise ``NothingScored`` if no
    row got a label, and ``CustosError`` as :meth:`AttackPlan.of`.
    """
    plan = AttackPlan.of(examples, options or AttackOptions())
    verdicts = list(judge.grade(plan.requests, progress=progress))
    alone = [verdict for request in plan.alone for verdict in judge.grade([request])]
    search = SuffixSearch(judge.grade, plan.suffixes)
    searched = [search.attack(example) for example in plan.searched]
    return plan.report(verdicts, alone, searched, command=command, dataset_sha256=dataset_sha256)
