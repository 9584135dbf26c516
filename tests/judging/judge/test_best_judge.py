"""Which judge answers, when several could."""

from __future__ import annotations

from typing import Any

import pytest

from judging.errors import CustosError, FieldError
from judging.judge import Judge
from judging.judge.best_judge import Familiarity, choose_judge, familiarity
from judging.judge.card import JudgeCard
from judging.types import JudgeRequest


class Known(Judge):
    """A judge that is only asked what it knows."""

    def __init__(
        self, tasks: dict[str, tuple[str, ...]] | None, calibrated: tuple[str, ...] = ()
    ) -> None:
        self.name = "known"
        self.card = None
        if tasks:
            none = dict.fromkeys(("backbone", "backbone_version"), "none")
            self.card = JudgeCard(**none, tasks=tasks, instructions={})
        rubrics: Any = dict.fromkeys(calibrated)
        self.calibration: Any = type("Fitted", (), {"rubrics": rubrics}) if calibrated else None


ANY_QS: dict[str, tuple[str, ...]] = {"hieval-qs": ("plain/any",)}
# By name the judge of the second stage comes first; it knows quick scores from replay.
EA = Known({"hieval-ea": ("plain/any",), **ANY_QS}, ("hieval-ea/plain/any",))
CALIBRATED = Known(ANY_QS, ("hieval-qs/plain/any",))
TRAINED = Known(ANY_QS)
ZERO_SHOT = Known(None)
OTHER = Known({"hieval-qs": ("plain/all",)})
PAIRS = Known({"truthful-pair": ("open",)})


def asked(**fields: Any) -> JudgeRequest:
    given = {"question": "q", "references": ("r",), "reference_mode": "any", "responses": ("a",)}
    return JudgeRequest.model_validate(given | fields)


def test_familiarity() -> None:
    judges = (PAIRS, OTHER, ZERO_SHOT, TRAINED, CALIBRATED)
    levels = [familiarity(one, "hieval-qs", "plain/any") for one in judges]
    assert levels == [level for level in Familiarity if level != Familiarity.OTHER_REFERENCE_MODE]
    assert familiarity(EA, "hieval-qs", "plain/any") == Familiarity.TRAINED


def test_a_calibration_counts_for_the_way_of_reading_it_was_fitted_for() -> None:
    pair = {"task": "truthful-pair", "responses": ("a", "b"), "references": ()}
    plain = Known({"truthful-pair": ("plain",)}, ("truthful-pair/plain",))
    after = Known({"truthful-pair": ("plain",)}, ("truthful-pair/plain/critique",))
    judges = {"plain": plain, "after": after}
    assert choose_judge(judges, asked(**pair, mode="score")) == "plain"
    assert choose_judge(judges, asked(**pair, mode="critique")) == "after"
    assert choose_judge(judges, asked(**pair)) == "after", "both write critiques if not told"


@pytest.mark.parametrize(
    ("judges", "best"),
    [
        ({"ea": EA, "qs": CALIBRATED}, "qs"),
        ({"zero": ZERO_SHOT, "trained": TRAINED}, "trained"),
        ({"zero": ZERO_SHOT, "other": OTHER}, "other"),
        ({"other": OTHER, "trained": TRAINED}, "trained"),
        ({"pairs": PAIRS, "other": OTHER}, "other"),
        ({"one": TRAINED, "two": TRAINED}, "one"),
    ],
)
def test_the_judge_that_knows_the_rubric_best(judges: dict[str, Judge], best: str) -> None:
    assert choose_judge(judges, asked()) == best
    assert choose_judge(judges | {"ea": EA}, asked(task="hieval-ea")) == "ea"


def test_alternatives_are_not_judged_as_an_answer_set() -> None:
    several = asked(references=("r", "s"))
    assert choose_judge({"other": OTHER, "zero": ZERO_SHOT}, several) == "zero"
    with pytest.raises(CustosError, match="'known' was trained for hieval-qs under plain/all"):
        choose_judge({"other": OTHER}, several)


def test_a_task_that_no_judge_takes() -> None:
    with pytest.raises(CustosError, match="field 'task': no judge here takes 'hieval-qs'"):
        choose_judge({"pairs": PAIRS}, asked())
    with pytest.raises(CustosError, match="field 'references'"):
        choose_judge({"zero": ZERO_SHOT}, asked(references=()))


def test_two_responses_without_a_task_name_the_tasks_that_take_two() -> None:
    request = JudgeRequest(question="?", responses=("a", "b"))
    with pytest.raises(FieldError, match="the request names none.*truthful-pair"):
        choose_judge({}, request)
