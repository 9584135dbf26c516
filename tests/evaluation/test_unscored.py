import pytest

from evaluation.outcomes import MAX_REASONS, check_scored, describe_reason, unscored_reasons
from judging.errors import CustosError
from judging.types import Verdict
from tests.evaluation.made_up import scored, unscored


def failed(id: str, message: str) -> Verdict:
    return Verdict(id=id, status="judge_error", message=message)


def test_reasons_are_counted_with_the_first_ids() -> None:
    verdicts = [scored("Correct", id="0"), *(failed(str(i), "too\nlong") for i in range(1, 8))]
    verdicts += [unscored("8"), Verdict(id="9", status="abstain", message="unsure")]
    reasons = unscored_reasons(verdicts)
    assert [(r["message"], r["n"], r["failed"]) for r in reasons] == [
        ("too long", 7, True),
        ("no label in the text", 1, True),
        ("unsure", 1, False),
    ]
    assert describe_reason(reasons[0]) == "7 rows: too long (id 1, 2, 3, 4, 5, ...)"
    assert describe_reason(reasons[1]) == "1 row: no label in the text (id 8)"


def test_many_reasons_lose_no_row() -> None:
    verdicts = [failed(str(i), f"fault {i}") for i in range(50)]
    verdicts += [Verdict(id=f"a{i}", status="abstain", message=f"doubt {i}") for i in range(3)]
    reasons = unscored_reasons(verdicts)
    assert len(reasons) == MAX_REASONS + 2
    assert sum(reason["n"] for reason in reasons) == 53
    assert sum(reason["n"] for reason in reasons if reason["failed"]) == 50


def test_no_label_at_all_is_an_error_with_its_reasons() -> None:
    check_scored([scored("Correct"), failed("2", "x")])
    check_scored([])
    with pytest.raises(CustosError, match=r"no row got a label: 2 rows: .* 'all' \(id 1, 2\)$"):
        check_scored([failed("1", "not trained for 'all'"), failed("2", "not trained for 'all'")])
