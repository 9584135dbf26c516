"""deepeval: GEval with given evaluation steps, and our metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from deepeval.metrics import GEval
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase, SingleTurnParams

from tests.harness.program import Case, Outcome, arguments, example, show

PARAMS = [
    SingleTurnParams.INPUT,
    SingleTurnParams.ACTUAL_OUTPUT,
    SingleTurnParams.EXPECTED_OUTPUT,
]
STEPS = ["Check whether the actual output gives the same answer as the expected output."]


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


def g_eval(url: str, name: str) -> GEval:
    return GEval(
        name="Correctness",
        model=LocalModel(model=name, base_url=f"{url}/v1", api_key="any"),
        evaluation_params=PARAMS,
        evaluation_steps=STEPS,
        async_mode=False,
    )


def main() -> None:
    url, prompts = arguments()
    show("glue", asked(lambda: example("deepeval", url)["metric"]))
    for way, name in prompts.items():
        show(way, asked(partial(g_eval, url, name)))


main()
