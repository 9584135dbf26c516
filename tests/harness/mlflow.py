"""mlflow: Correctness and make_judge with their own prompts, and our scorer, in ``evaluate``."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from tempfile import mkdtemp
from typing import Any

import mlflow

from tests.harness.program import Case, Outcome, arguments, example, show

RATINGS: dict[Any, Outcome] = {"yes": "pass", True: "pass", "no": "fail", False: "fail"}


def evaluated(make: Callable[[], Any]) -> Any:
    def conclude(case: Case) -> tuple[Outcome, Any]:
        scorer = make()
        row = {
            "inputs": {"question": case.question},
            "outputs": case.response,
            "expectations": {"expected_response": case.reference},
        }
        result = mlflow.genai.evaluate(data=[row], scorers=[scorer])
        [found] = [
            each
            for each in result.result_df["assessments"][0]
            if each["assessment_name"] == scorer.name
        ]
        feedback = found["feedback"]
        outcome = RATINGS.get(feedback["value"], "error")
        return outcome, found.get("rationale") or feedback.get("error")

    return conclude


def own(way: str, name: str) -> Any:
    """Make a scorer that asks by mlflow's own prompt."""
    model = f"openai:/{name}"
    if way == "Correctness":
        return mlflow.genai.scorers.Correctness(model=model)
    return mlflow.genai.judges.make_judge(
        name="same",
        instructions="Do {{ outputs }} answer {{ inputs }} as {{ expectations }} say?",
        model=model,
        feedback_value_type=bool,
    )


def main() -> None:
    url, prompts = arguments()
    mlflow.set_tracking_uri(f"sqlite:///{mkdtemp()}/mlflow.db")
    os.environ |= {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "any"}
    show("glue", evaluated(lambda: example("mlflow", url)["scorer"]))
    for way, name in prompts.items():
        show(way, evaluated(partial(own, way, name)))


main()
