"""People's labels and verdicts: lined up, refused, without a label, kept."""

from pathlib import Path

import numpy as np
import pytest

from evaluation.metrics import UNSCORED
from evaluation.outcomes import (
    MAX_REASONS,
    check_labels,
    check_scored,
    describe_reason,
    gather,
    label_set,
    load_evaluation,
    save_evaluation,
    unscored_reasons,
)
from judging.errors import CustosError, FieldError
from judging.tasks import base
from judging.types import JudgeRequest, LabelledExample, Verdict
from tests.evaluation.made_up import evaluation, example, scored, unscored


class _ByMode:
    """A task whose label set depends on the request, as HiEval's does."""

    def rubric(self, request: JudgeRequest) -> str:
        return request.reference_mode

    def labels(self, rubric: str) -> tuple[str, ...]:
        return ("Right", "Partial", "Bad") if rubric == "all" else ("Right", "Bad")


def test_arrays_line_up() -> None:
    examples = [
        example("Wrong", id="a", question="q1"),
        example("Correct", id="b", question="q2"),
        example("Correct", id="c", question="q1"),
        example("Correct", id="d", question="q3", group="q2"),
    ]
    verdicts = [
        scored("Wrong", 0.7, "Correct", id="a"),
        unscored("b"),
        scored("Wrong", 0.6, "Correct", id="c", confidence=0.55),
        scored("Correct", id="d"),
    ]
    outcomes = gather(examples, verdicts, ("Correct", "Wrong"))
    assert outcomes.human.tolist() == [1, 0, 0, 0]
    assert outcomes.predicted.tolist() == [1, UNSCORED, 1, 0]
    assert outcomes.scored.tolist() == [True, False, True, True]
    assert outcomes.right.tolist() == [True, False, False, True]
    assert outcomes.clusters.tolist() == [0, 1, 0, 1]
    nan = float("nan")
    np.testing.assert_allclose(outcomes.confidence, [0.7, nan, 0.55, nan])
    np.testing.assert_allclose(
        outcomes.probabilities, [[0.3, 0.7], [nan, nan], [0.4, 0.6], [nan, nan]]
    )
    part = outcomes.take(np.array([False, True, True, False]))
    assert (part.human.tolist(), part.clusters.tolist()) == ([0, 0], [1, 0])


def test_verdicts_must_belong_to_the_examples() -> None:
    with pytest.raises(CustosError, match="no examples"):
        gather([], [], ())
    with pytest.raises(CustosError, match="1 verdicts for 2 examples"):
        gather([example(), example()], [scored("Correct")], ("Correct",))
    with pytest.raises(CustosError, match="row 1: verdict 'x' does not belong to example '1'"):
        gather([example()], [scored("Correct", id="x")], ("Correct",))


def test_labels_keep_the_order_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base.TASKS.entries, "by-mode", _ByMode())
    any_mode = example("Right", task="by-mode", reference_mode="any")
    all_mode = example("Bad", task="by-mode", reference_mode="all")
    assert label_set([any_mode]) == ("Right", "Bad")
    assert label_set([any_mode, all_mode]) == ("Right", "Partial", "Bad")
    stray = [scored("Aside"), unscored()]
    assert label_set([any_mode, all_mode], stray) == ("Right", "Partial", "Bad", "Aside")


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


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    examples, verdicts = evaluation(unscored_every=7)
    save_evaluation(tmp_path / "run", examples, verdicts)
    assert load_evaluation(tmp_path / "run") == (examples, verdicts)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    save_evaluation(tmp_path, examples, verdicts)
    (tmp_path / "verdicts.jsonl").unlink()
    with pytest.raises(CustosError, match=r"no verdicts.jsonl there: give the folder"):
        load_evaluation(tmp_path)


def labelled(*labels: str, **fields: object) -> list[LabelledExample]:
    return [example(label, id=str(i), **fields) for i, label in enumerate(labels)]


def test_an_unknown_task_is_named_with_its_row() -> None:
    with pytest.raises(FieldError, match="row 1: field 'task': 'elsewhere' is not one of"):
        check_labels(labelled("Wrong", task="elsewhere"))
