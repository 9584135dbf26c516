"""What is accepted from a confidence on, against counting by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluation.attacks.report import FLOORS, at_floors, build_report, render_markdown, render_page
from evaluation.attacks.rows import AttackRow
from judging.types import JudgeRequest, Verdict

Outcome = tuple[str | None, float]
OUTCOMES = st.lists(
    st.tuples(st.sampled_from(["Correct", "Wrong", None]), st.floats(0.5, 1.0)), max_size=8
)


def graded(family: str, outcomes: list[Outcome]) -> list[tuple[AttackRow, Verdict]]:
    """Rows of a family, each on a question of its own, with these labels and confidences."""
    return [
        (
            AttackRow(
                family=family,
                wording="w",
                cluster=f"q{number}",
                request=JudgeRequest(
                    id=f"{family}/{number}",
                    question="Which?",
                    references=("Paris",),
                    responses=("x",),
                ),
            ),
            Verdict(
                id=f"{family}/{number}",
                status="scored" if label else "judge_error",
                label=label,
                confidence=confidence if label else None,
            ),
        )
        for number, (label, confidence) in enumerate(outcomes)
    ]


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


def test_a_judge_without_confidences_has_no_floors() -> None:
    [(row, verdict)] = graded("denial", [("Correct", 0.5)])
    unsure = verdict.model_copy(update={"confidence": None})
    assert at_floors({"denial": [(row, unsure)]}, {}) == ()


def test_what_a_rule_decided_is_sure() -> None:
    (row, verdict), other = graded("denial", [("Correct", 0.5), ("Correct", 0.6)])
    ruled = verdict.model_copy(update={"confidence": None})
    floors = at_floors({"denial": [(row, ruled), other]}, {})
    assert [at.attacks.value for at in floors] == [1, 1, 0.5, 0.5, 0.5, 0.5]


def test_the_report_shows_them() -> None:
    pairs = [
        *graded("denial", [("Correct", 0.65), ("Wrong", 0.9)]),
        *graded("right_bare", [("Correct", 0.85), ("Correct", 0.99)]),
    ]
    report = build_report([row for row, _ in pairs], [v for _, v in pairs], command="custos x")
    text = render_markdown(report, "mine.jsonl")
    [line] = [line for line in text.splitlines() if line.startswith("| 0.9")][:1]
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[2].startswith("0.000") and cells[3] == "none passes"
    assert cells[4].startswith("0.500")
    assert "Only confident verdicts" in render_page(report, "mine.jsonl")
