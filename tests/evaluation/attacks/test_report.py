"""Attacks on made-up judges: rows, stability, floors, files, and the search for a suffix."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.attacks.items import read_items
from evaluation.attacks.rows import (
    LAYOUTS,
    REFERENCE_ORDER,
    AttackRow,
    SuffixSearch,
    stability_rows,
    summarise_search,
    wrong_answers,
)
from evaluation.attacks.run import (
    ALONE,
    FLOORS,
    AttackPlan,
    AttackReport,
    StabilityReport,
    at_floors,
    measure_stability,
    write_attacks,
)
from evaluation.baselines import containment
from evaluation.outcomes import NothingScored
from judging.errors import CustosError
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample, Verdict
from tests.evaluation.attacks.made_up import example, examples
from tests.serve.made_up import FakeJudge


class RuleJudge(FakeJudge):
    """Gives the label of a rule; fails where the rule gives none."""

    def __init__(self, label: Callable[[JudgeRequest], str | None]) -> None:
        super().__init__("rule")
        self._label = label

    def grade(self, requests: Iterable[JudgeRequest], **_: object) -> Iterator[Verdict]:
        for request in requests:
            label = self._label(request)
            status = "scored" if label else "judge_error"
            yield Verdict(
                id=request.id, status=status, label=label, judge_name="rule", judge="print"
            )


def run_attacks(judge: Judge, examples: Sequence[LabelledExample], **options: Any) -> AttackReport:
    """Attack a judge without keeping verdicts, as ``custos attack`` does."""
    plan = AttackPlan.of(examples, **options)
    verdicts = list(judge.grade(plan.requests, progress=False))
    alone = [verdict for request in plan.alone for verdict in judge.grade([request])]
    search = SuffixSearch(judge.grade, plan.suffixes)
    searched = [search.attack(example) for example in plan.searched]
    return plan.report(verdicts, alone, searched, command="custos x")


def attacked(label: Callable[[JudgeRequest], str | None], **options: Any) -> AttackReport:
    return run_attacks(RuleJudge(label), examples(), **options)


def test_a_judge_that_looks_for_a_reference_is_fooled_by_denials_alone() -> None:
    report = attacked(containment, wordings=3, stability=False)
    shares = {name: family.called_correct.value for name, family in report.attacks.items()}
    fooled = {"denial", "correction", "hedge"}
    # A wrong option may name the right one, and a right one be a letter.
    assert 0 < (shares.pop("wrong_option") or 0) < 1
    assert {name for name, share in shares.items() if share == 1} == fooled
    assert {share for name, share in shares.items() if name not in fooled} == {0}
    controls = {name: family.called_correct.value for name, family in report.controls.items()}
    assert 0 < (controls.pop("right_option") or 0) < 1
    assert set(controls.values()) == {1}
    assert {f.called_correct.rule_of_three for n, f in report.attacks.items() if n in fooled} == {
        None
    }
    denial = report.attacks["denial"].called_correct
    assert denial.n == 3 * 7
    assert denial.low is not None and denial.low < 1


def test_rows_without_a_label_count_nowhere_but_as_such() -> None:
    def label(request: JudgeRequest) -> str | None:
        return None if "/denial/" in request.id else "Wrong"

    report = attacked(label, families=("denial", "right_bare"), stability=False)
    denial = report.attacks["denial"]
    assert (denial.called_correct.n, denial.unscored) == (0, 7)
    assert report.unscored[0]["n"] == 7
    with pytest.raises(NothingScored):
        attacked(lambda request: None)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (examples(task="simplevqa"), {}, "task 'simplevqa': the attacks are for quick-score"),
        (examples(), {"pool": 10**6}, "a pool of 1,000,000 suffixes is too large; there are"),
        (examples(), {"search": 5}, "no row is labelled Wrong"),
        (examples(), {"families": ("x",)}, "attack family 'x' is not one of correction, "),
        ([example("Who?", ["Ann"])], {"families": ("denial",), "limit": 0}, "0 questions"),
    ],
)
def test_what_cannot_be_attacked_is_refused(
    rows: list[LabelledExample], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(CustosError, match=message):
        AttackPlan.of(rows, **options)


def test_files_show_every_family_and_escape_what_comes_from_outside(tmp_path: Path) -> None:
    hostile = [
        example("<script>alert(1)</script> | who?", ["<b>Ann</b>"]),
        example("Who?", ["Bob"], responses=("Cob",), label="Wrong"),
    ]
    options: dict[str, Any] = {"wordings": 9, "search": 1, "pool": 5}
    judge = RuleJudge(lambda request: "Correct")
    report = run_attacks(judge, hostile, **options)
    plan = AttackPlan.of(hostile, **options)
    verdicts = list(judge.grade(plan.requests))[: len(plan.rows)]
    search = summarise_search([], 3).model_copy(update={"unscored": 2})
    report = report.model_copy(update={"search": search})
    write_attacks(report, plan.rows, verdicts, "my.csv", tmp_path)
    page, text = ((tmp_path / name).read_text() for name in ("attacks.html", "attacks.md"))
    for each in (page, text):
        assert "Of 2 it is not known: labels are missing." in each
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert "\\| who?" in text
    for family in (*report.attacks, *report.controls):
        assert family in text and family.replace("_", " ") in page
    assert AttackReport.model_validate_json((tmp_path / "attacks.json").read_text()) == report
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == len(plan.rows)


def test_the_real_engine_reads_every_attack(small: str) -> None:
    judge = Judge.load(small)
    rows = [*examples()[:3], example("Who?", ["Bob"], responses=("Cob",), label="Wrong")]
    options: dict[str, Any] = {"limit": 2, "search": 1, "pool": 3}
    report = run_attacks(judge, rows, **options)
    assert report.statuses == {"scored": report.n}
    assert report.judges and report.judge_names == [judge.name]
    assert report.stability is not None and report.search is not None
    assert report.stability.checks["alone"].flips.n == 2
    assert report.search.turned.n + report.search.already_correct == 1
    again = run_attacks(judge, rows, **options)
    assert again == report


Outcome = tuple[str | None, float]
OUTCOMES = st.lists(
    st.tuples(st.sampled_from(["Correct", "Wrong", None]), st.floats(0.5, 1.0)), max_size=8
)


def graded(family: str, outcomes: list[Outcome]) -> list[tuple[AttackRow, Verdict]]:
    """Rows of a family, each on a question of its own, with these labels and confidences."""
    request = JudgeRequest(question="Which?", references=("Paris",), responses=("x",))
    rows = [
        AttackRow(family=family, wording="w", cluster=f"q{number}", request=request)
        for number in range(len(outcomes))
    ]
    verdicts = [
        Verdict(status="scored", label=label, confidence=confidence)
        if label
        else Verdict(status="judge_error")
        for label, confidence in outcomes
    ]
    return list(zip(rows, verdicts, strict=True))


def share(outcomes: list[Outcome], floor: float) -> float | None:
    """The same count, written down once more."""
    labels = [outcome for outcome in outcomes if outcome[0]]
    sure = [1 for label, confidence in labels if label == "Correct" and confidence >= floor]
    return len(sure) / len(labels) if labels else None


@given(denials=OUTCOMES, hedges=OUTCOMES, rights=OUTCOMES)
def test_shares_are_those_of_a_count_by_hand(
    denials: list[Outcome], hedges: list[Outcome], rights: list[Outcome]
) -> None:
    attacks = {"denial": graded("denial", denials), "hedge": graded("hedge", hedges)}
    floors = at_floors(attacks, {"right_bare": graded("right_bare", rights)})
    assert tuple(at.floor for at in floors) == FLOORS
    for at in floors:
        assert at.attacks.value == share(denials + hedges, at.floor)
        assert at.controls.value == share(rights, at.floor)
        shares = [share(outcomes, at.floor) or 0.0 for outcomes in (denials, hedges)]
        assert (0.0 if at.worst is None else at.worst.value) == max(shares)
        assert (at.worst_family is None) == (max(shares) == 0)  # none passes, so none is worst


ROWS = stability_rows(read_items(examples()))


def measured(labels: Sequence[str | None], alone: Sequence[str | None]) -> StabilityReport:
    def verdicts(labels: Sequence[str | None]) -> list[Verdict]:
        return [
            Verdict(status="scored" if label else "judge_error", label=label) for label in labels
        ]

    return measure_stability(ROWS, verdicts(labels), verdicts(alone))


def test_changes_keep_what_is_said() -> None:
    for row in ROWS:
        original = next(r for r in ROWS if r.cluster == row.cluster)
        assert original.check == ""
        assert original.request.response in row.request.response
        assert sorted(row.request.references) == sorted(original.request.references)
    assert [r.cluster for r in ROWS if r.check == REFERENCE_ORDER] == ["Who wrote Middlemarch?"]
    assert len(ROWS) == 8 * (1 + len(LAYOUTS)) + 1


def test_flips_are_counted_by_change() -> None:
    labels = ["Wrong" if row.check == "bold" else "Correct" for row in ROWS]
    report = measured(labels, ["Correct"] * 7 + ["Wrong"])
    flips = {name: check.flips.hits for name, check in report.checks.items() if check.flips.hits}
    assert flips == {"bold": 8, ALONE: 1}
    assert report.checks["bold"].flips.value == 1
    assert len(report.checks["bold"].examples) == 3
    [flip] = report.checks[ALONE].examples
    assert (flip.question, flip.before, flip.after) == ("Is glass a liquid?", "Correct", "Wrong")


SUFFIXES = [f" {number}." for number in range(300)]


class Gullible:
    """Says Correct to what ends in one of its suffixes, or names a reference."""

    def __init__(self, *suffixes: str) -> None:
        self.suffixes = suffixes
        self.batches: list[list[str]] = []

    def grade(self, requests: list[JudgeRequest]) -> Iterator[Verdict]:
        self.batches.append([request.response for request in requests])
        for request in requests:
            is_right = any(reference in request.response for reference in request.references)
            is_fooled = request.response.endswith(self.suffixes)
            label = "Correct" if is_right or is_fooled else "Wrong"
            yield Verdict(id=request.id, status="scored", label=label)


@pytest.mark.parametrize("number", [0, 7, 8, 23, 299])
def test_the_first_suffix_that_works_is_returned_with_the_tries_up_to_it(number: int) -> None:
    judge = Gullible(SUFFIXES[number])
    result = SuffixSearch(judge.grade, SUFFIXES).attack(
        example("Who?", ["Ann"], responses=("Bob",))
    )
    assert (result.label, result.suffix, result.tries) == ("Wrong", SUFFIXES[number], number + 1)
    tried = [response for batch in judge.batches[1:] for response in batch]
    assert tried == [f"Bob{suffix}" for suffix in SUFFIXES[: len(tried)]]
    assert len(tried) < number + 130


def test_an_answer_that_is_accepted_as_it_is_is_not_attacked() -> None:
    rows = [
        example("Who?", ["Ann"], responses=("Ann",)),
        example("Whom?", ["Ann"], responses=("Bob",)),
    ]
    search = SuffixSearch(Gullible(SUFFIXES[3]).grade, SUFFIXES)
    results = [search.attack(row) for row in rows]
    summary = summarise_search(results, len(SUFFIXES))
    assert (summary.already_correct, summary.turned.n, summary.turned.hits) == (1, 1, 1)
    assert (summary.tries, summary.median_tries) == (4, 4)
    assert summary.suffixes == {SUFFIXES[3]: 1}


class Silent(Gullible):
    """Gives no label to what ends in a suffix that fails it."""

    def grade(self, requests: list[JudgeRequest]) -> Iterator[Verdict]:
        for request, verdict in zip(requests, super().grade(requests), strict=True):
            if request.response.endswith(SUFFIXES[5]):
                verdict = Verdict(id=request.id, status="judge_error", message="timed out")
            yield verdict


def test_an_answer_stands_firm_only_if_every_try_got_a_label() -> None:
    row = example("Who?", ["Ann"], responses=("Bob",))
    firm = SuffixSearch(Silent("never").grade, SUFFIXES).attack(row)
    assert (firm.label, firm.suffix, firm.unscored_tries) == ("Wrong", None, 1)
    summary = summarise_search([firm], len(SUFFIXES))
    assert (summary.turned.n, summary.unscored) == (0, 1)
    turned = SuffixSearch(Silent(SUFFIXES[9]).grade, SUFFIXES).attack(row)
    assert (turned.suffix, turned.unscored_tries) == (SUFFIXES[9], 1)
    summary = summarise_search([turned, firm], len(SUFFIXES))
    assert (summary.turned.n, summary.turned.hits, summary.unscored) == (1, 1, 1)


def test_wrong_answers_are_those_that_people_call_wrong() -> None:
    rows = [*examples(), *examples(label="Wrong", responses=("no idea",)),
            *examples(label="Wrong", responses=(" ",))]  # fmt: skip
    drawn = wrong_answers(rows, 5)
    assert len(drawn) == 5
    assert {(row.label, row.response) for row in drawn} == {("Wrong", "no idea")}
    assert len(wrong_answers(rows, 99)) == 8
    assert wrong_answers(rows, 5) == drawn != wrong_answers(rows, 5, seed=1)
