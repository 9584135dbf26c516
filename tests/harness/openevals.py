"""openevals: its correctness prompt through OpenAI's client and LangChain, and our evaluator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_openai import ChatOpenAI
from openevals.llm import create_llm_as_judge
from openevals.prompts import CORRECTNESS_PROMPT

from tests.harness.program import OWN_PAGE, Case, Outcome, arguments, example, of_score, show


def asked(make: Callable[[], Any]) -> Any:
    def conclude(case: Case) -> tuple[Outcome, Any]:
        result = make()(
            inputs=case.question, outputs=case.response, reference_outputs=case.reference
        )
        return of_score(float(result["score"])), result["comment"]

    return conclude


def own(way: str, url: str, model: str) -> Any:
    """Make an evaluator that asks by the prompt of openevals."""
    if way == "LangChain":
        judge = ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="any", max_retries=0)
        return create_llm_as_judge(prompt=CORRECTNESS_PROMPT, judge=judge)
    return example("openevals", url, OWN_PAGE)["evaluator"]


def main() -> None:
    url, prompts = arguments()
    show("glue", asked(lambda: example("openevals", url)["evaluator"]))
    for way, model in prompts.items():
        show(way, asked(partial(own, way, url, model)))


main()
