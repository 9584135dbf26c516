from collections.abc import Sequence

from evaluation.attacks.items import read_items
from evaluation.attacks.report import ALONE, StabilityReport, measure_stability
from evaluation.attacks.rows import LAYOUTS, REFERENCE_ORDER, stability_rows
from judging import Verdict
from tests.evaluation.attacks.made_up import examples

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


def test_rows_without_a_label_flip_nothing() -> None:
    labels = [None if row.check == "" else "Correct" for row in ROWS]
    assert measured(labels, ["Correct"] * 8).checks == {}
