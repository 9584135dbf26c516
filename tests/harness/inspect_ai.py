"""inspect_ai: model_graded_qa and model_graded_fact, and our scorer, found by its entry point."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from inspect_ai._util.registry import registry_create
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Target, model_graded_fact, model_graded_qa
from inspect_ai.solver import TaskState

from tests.harness.program import OWN_PAGE, Case, Outcome, arguments, example, show

GRADES: dict[Any, Outcome] = {"C": "pass", "P": "partial", "I": "fail"}


def asked(scorer: Any) -> Any:
    async def score(case: Case) -> Any:
        output = ModelOutput.from_content("any", case.response)
        state = TaskState("any", 1, 1, case.question, [], output=output)
        return await scorer(state, Target(case.reference))

    def conclude(case: Case) -> tuple[Outcome, Any]:
        score_of_case = asyncio.run(score(case))
        return GRADES.get(score_of_case.value, "error"), score_of_case.explanation

    return conclude


def main() -> None:
    url, prompts = arguments()
    example("inspect_ai", url)
    show("glue", asked(registry_create("scorer", "custos/judged", judge=url)))
    scorer = example("inspect_ai", url, OWN_PAGE)["scorer"]
    for way, name in prompts.items():
        if way == "model_graded_qa":
            show(way, asked(scorer))
            continue
        model = get_model(f"openai-api/custos/{name}", base_url=f"{url}/v1", api_key="any")
        make = {
            "model_graded_fact": model_graded_fact,
            "partial_credit": partial(model_graded_qa, partial_credit=True),
        }[way]
        show(way, asked(make(model=model)))


main()
