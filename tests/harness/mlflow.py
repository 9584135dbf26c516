"""mlflow: Correctness and make_judge with their own prompts, and our scorer, in ``evaluate``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from tempfile import mkdtemp
from typing import Any

import mlflow

from tests.harness.program import OWN_PAGE, Case, Outcome, arguments, example, show

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


def main() -> None:
    url, prompts = arguments()
    mlflow.set_tracking_uri(f"sqlite:///{mkdtemp()}/mlflow.db")
    show("glue", evaluated(lambda: example("mlflow", url)["scorer"]))
    scorers = {"Correctness": "scorer", "make_judge": "judge"}
    for way in prompts:
        make = partial(example("mlflow", url, OWN_PAGE).__getitem__, scorers[way])
        show(way, evaluated(make))


main()
