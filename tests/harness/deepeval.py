"""deepeval: GEval by criteria, by steps with a rubric and strictly by steps, and our metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from deepeval.metrics import GEval
from deepeval.metrics.g_eval import Rubric
from deepeval.test_case import LLMTestCase, SingleTurnParams

from tests.harness.program import OWN_PAGE, Case, Outcome, arguments, example, show

PARAMS = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.EXPECTED_OUTPUT]
SAME = "Check whether the actual output gives the same answer as the expected output."


def asked(make: Callable[[], Any]) -> Any:
    def conclude(case: Case) -> tuple[Outcome, Any]:
        metric = make()
        metric.measure(
            LLMTestCase(
                input=case.question, actual_output=case.response, expected_output=case.reference
            ),
            _show_indicator=False,
        )
        if metric.is_successful():
            return "pass", metric.reason
        is_part = metric.score == 0.5
        return "partial" if is_part else "fail", f"{metric.score} {metric.reason}"

    return conclude


OPTIONS: dict[str, dict[str, Any]] = {
    "GEval": {"criteria": SAME},
    "GEval, rubric": {
        "evaluation_steps": [SAME],
        "rubric": [
            Rubric(score_range=(0, 4), expected_outcome="Another answer."),
            Rubric(score_range=(5, 10), expected_outcome="The same answer."),
        ],
    },
    "GEval, strict": {"evaluation_steps": [SAME], "strict_mode": True},
}


def g_eval(url: str, way: str) -> GEval:
    return GEval(
        name="Correctness",
        model=example("deepeval", url, OWN_PAGE)["model"],
        evaluation_params=PARAMS,
        async_mode=False,
        **OPTIONS[way],
    )


def main() -> None:
    url, prompts = arguments()
    show("glue", asked(lambda: example("deepeval", url)["metric"]))
    for way in prompts:
        show(way, asked(partial(g_eval, url, way)))


main()
