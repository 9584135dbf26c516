import numpy as np
import pytest

from evaluation.declared_labels import label_set
from evaluation.metrics import UNSCORED
from evaluation.outcomes import full_label, gather
from judging.errors import CustosError
from judging.tasks import base
from judging.types import JudgeRequest, Verdict, score_of, type_of
from tests.evaluation.made_up import example, scored, unscored


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


def test_a_label_the_posterior_does_not_know_has_no_probability() -> None:
    outcomes = gather(
        [example("Partial")], [scored("Correct", 0.9)], ("Correct", "Partial", "Wrong")
    )
    np.testing.assert_allclose(outcomes.probabilities, [[0.9, 0, 0.1]])


def test_an_abstention_with_a_posterior_stays_unscored() -> None:
    verdict = Verdict(
        id="1", status="abstain", probabilities={"Correct": 0.5, "Wrong": 0.5}, message="unsure"
    )
    outcomes = gather([example()], [verdict], ("Correct", "Wrong"))
    assert not outcomes.scored[0]
    assert np.isnan(outcomes.confidence[0])


def test_verdicts_must_belong_to_the_examples() -> None:
    with pytest.raises(CustosError, match="no examples"):
        gather([], [], ())
    with pytest.raises(CustosError, match="1 verdicts for 2 examples"):
        gather([example(), example()], [scored("Correct")], ("Correct",))
    with pytest.raises(CustosError, match="row 1: verdict 'x' does not belong to example '1'"):
        gather([example()], [scored("Correct", id="x")], ("Correct",))


def test_labels_with_error_types() -> None:
    assert full_label(scored("Wrong", error_type="Other")) == "Wrong; Other"
    assert full_label(scored("Wrong; Other", error_type="Other")) == "Wrong; Other"
    assert full_label(example("Correct")) == "Correct"
    assert (score_of("Wrong; Other"), type_of("Wrong; Other")) == ("Wrong", "Other")
    assert (score_of("Correct"), type_of("Correct")) == ("Correct", "")


def test_labels_keep_the_order_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base.TASKS.entries, "by-mode", _ByMode())
    any_mode = example("Right", task="by-mode", reference_mode="any")
    all_mode = example("Bad", task="by-mode", reference_mode="all")
    assert label_set([any_mode]) == ("Right", "Bad")
    assert label_set([any_mode, all_mode]) == ("Right", "Partial", "Bad")
    stray = [scored("Aside"), unscored()]
    assert label_set([any_mode, all_mode], stray) == ("Right", "Partial", "Bad", "Aside")
