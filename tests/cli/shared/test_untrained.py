"""The untrained model beside trained judges."""

from __future__ import annotations

from cli.shared.judges import EngineOnUse, untrained_judge
from judging.judge import Judge
from judging.tasks import get_task
from judging.types import JudgeRequest


def test_it_is_loaded_when_a_model_is_needed_and_decides_as_if_it_had_been() -> None:
    loaded: list[Judge] = []
    judge = untrained_judge(loaded.append)
    assert isinstance(judge.engine, EngineOnUse)
    rule, model = (
        JudgeRequest.model_validate(get_task(name).example_row())
        for name in ("chartom-fact", "charthal")
    )
    keys = [judge.fingerprint(request) for request in (rule, model)]
    [by_rule] = judge.grade([rule])
    assert (by_rule.label, loaded) == ("Correct", [])
    [by_model] = judge.grade([model])
    [direct] = loaded
    assert keys == [direct.fingerprint(request) for request in (rule, model)]
    [expected] = direct.grade([model])
    assert by_model.model_dump() == expected.model_dump()
    assert by_model.message == "not measured on this task"
