"""openevals: its correctness prompt through OpenAI's client and LangChain, and our evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_openai import ChatOpenAI
from openai import OpenAI
from openevals.llm import create_llm_as_judge
from openevals.prompts import CORRECTNESS_PROMPT

from tests.harness.program import Case, Outcome, arguments, example, of_score, show


def asked(make: Callable[[], Any]) -> Any:
    def conclude(case: Case) -> tuple[Outcome, Any]:
        result = make()(
            inputs=case.question, outputs=case.response, reference_outputs=case.reference
        )
        return of_score(float(result["score"])), result["comment"]

    return conclude


def main() -> None:
    url, prompts = arguments()
    server = {"base_url": f"{url}/v1", "api_key": "any", "max_retries": 0}
    clients = {
        "create_llm_as_judge": lambda model: {"judge": OpenAI(**server), "model": model},
        "LangChain": lambda model: {"judge": ChatOpenAI(model=model, **server)},
    }
    show("glue", asked(lambda: example("openevals", url)["evaluator"]))
    for way, model in prompts.items():
        evaluator = create_llm_as_judge(prompt=CORRECTNESS_PROMPT, **clients[way](model))
        show(way, asked(lambda evaluator=evaluator: evaluator))


main()
