"""Glue that subclasses a tool's classes, on stand-ins of them; the real tools: tests/harness."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from custos.integrations._core import NoLabel
from tests.custos.integrations.test_core import (
    BROKEN,
    CLOSE,
    PARTIAL,
    QUESTION,
    RIGHT,
    WRONG,
    Labels,
)
from tests.serve.made_up import picture


class Metric:
    """deepeval's BaseMetric, as far as it matters."""

    error: str | None = None
    success: bool | None = None
    score: float | None = None
    threshold: float | None = None
    reason: str | None = None


class Score(SimpleNamespace):
    """inspect_ai's score."""

    @classmethod
    def unscored(cls, **fields: Any) -> Score:
        return cls(value=None, **fields)


class ContentImage(SimpleNamespace):
    """inspect_ai's picture in a message."""


def as_it_is(**_: Any) -> Any:
    return lambda function: function


STAND_INS: dict[str, dict[str, Any]] = {
    "deepeval.metrics": {"BaseMetric": Metric},
    "deepeval.test_case": {
        "LLMTestCase": SimpleNamespace,
        "SingleTurnParams": SimpleNamespace(INPUT="i", ACTUAL_OUTPUT="a", EXPECTED_OUTPUT="e"),
    },
    "inspect_ai.model": {"ContentImage": ContentImage},
    "inspect_ai.scorer": {
        **{"CORRECT": "C", "INCORRECT": "I", "PARTIAL": "P"},
        **{"Score": Score, "Scorer": Any, "Target": list},
        **{"accuracy": lambda: None, "stderr": lambda: None, "scorer": as_it_is},
    },
    "inspect_ai.solver": {"TaskState": SimpleNamespace},
}


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, values in STAND_INS.items():
        for path in (name.partition(".")[0], name):
            monkeypatch.setitem(sys.modules, path, ModuleType(path))
        vars(sys.modules[name]).update(values)
    yield
    for tool in ("deepeval", "inspect_ai"):
        sys.modules.pop(f"custos.integrations.{tool}", None)


def case(response: str) -> Any:
    return SimpleNamespace(input=QUESTION, actual_output=response, expected_output="Elbe")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("threshold", "passing"), [(1.0, [RIGHT]), (0.5, [RIGHT, PARTIAL]), (0.0, [RIGHT, PARTIAL])]
)
def test_a_metric_of_deepeval(threshold: float, passing: list[str]) -> None:
    module = importlib.import_module("custos.integrations.deepeval")
    metric = module.AnswerMetric(Labels(), threshold=threshold, reference_mode="any")
    # As deepeval copies it.
    metric = module.AnswerMetric(judge=metric.judge, threshold=metric.threshold)
    for response in (PARTIAL, WRONG, CLOSE, RIGHT):
        assert metric.measure(case(response)) == asyncio.run(metric.a_measure(case(response)))
        assert metric.is_successful() == (response in passing)
    assert metric.judge.judge.seen[0].reference_mode == "any"
    metric.error = "no verdict"
    assert not metric.is_successful()
    metric.error = None
    with pytest.raises(NoLabel):
        metric.measure(case(BROKEN))
    assert not metric.is_successful(), "it forgets the case before"


def state(response: str, *content: Any) -> Any:
    messages = [SimpleNamespace(content="Look."), SimpleNamespace(content=list(content))]
    return SimpleNamespace(
        output=SimpleNamespace(completion=response),
        choices=[],
        input=messages if content else QUESTION,
        input_text=QUESTION,
    )


@pytest.mark.usefixtures("tools")
def test_a_scorer_of_inspect_ai() -> None:
    module, judge = importlib.import_module("custos.integrations.inspect_ai"), Labels()
    score = module.judged(judge)
    for response, value in ((RIGHT, "C"), (PARTIAL, "P"), (CLOSE, "I"), (WRONG, "I")):
        assert asyncio.run(score(state(response), ["Elbe", "Labe"])).value == value
    assert asyncio.run(score(state(BROKEN), ["Elbe"])).value is None
    assert judge.seen[0].references == ("Elbe", "Labe")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(("task", "shown"), [("hieval-ea", 1), ("hieval-qs", 0)])
def test_pictures_of_inspect_ai_are_shown_to_tasks_that_read_them(task: str, shown: int) -> None:
    module, judge = importlib.import_module("custos.integrations.inspect_ai"), Labels()
    content = (ContentImage(image=picture()), SimpleNamespace(text="Which?"))
    asyncio.run(module.judged(judge, task=task)(state(RIGHT, *content), ["Elbe"]))
    assert len(judge.seen[0].images) == shown
