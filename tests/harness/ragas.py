"""ragas: AnswerAccuracy of both generations, DiscreteMetric, and our metric."""

from __future__ import annotations

import asyncio
from typing import Any

from httpx import AsyncClient
from langchain_openai import ChatOpenAI
from openai import OpenAI
from ragas.dataset_schema import SingleTurnSample
from ragas.llms import LangchainLLMWrapper, llm_factory
from ragas.metrics import AnswerAccuracy as OlderAnswerAccuracy
from ragas.metrics import DiscreteMetric
from ragas.metrics.collections import AnswerAccuracy

from tests.harness.program import OWN_PAGE, Case, Outcome, arguments, example, of_score, show

DISCRETE = "Question: {user_input}\nReference: {reference}\nResponse: {response}"


def fields(case: Case) -> dict[str, str]:
    return {"user_input": case.question, "response": case.response, "reference": case.reference}


def main() -> None:
    url, prompts = arguments()
    loop = asyncio.new_event_loop()
    server: dict[str, Any] = {"base_url": f"{url}/v1", "api_key": "any", "max_retries": 0}

    def glue(case: Case) -> tuple[Outcome, Any]:
        result = example("ragas", url)["metric"].score(**fields(case))
        return of_score(result.value), result.reason

    def older(case: Case) -> tuple[Outcome, Any]:
        name = prompts["AnswerAccuracy (older)"]
        client = AsyncClient()  # LangChain would keep one whose event loop is closed
        llm = LangchainLLMWrapper(ChatOpenAI(model=name, http_async_client=client, **server))
        sample = SingleTurnSample(**fields(case))
        score = OlderAnswerAccuracy(llm=llm).single_turn_score(sample)
        return of_score(score), score

    def new(case: Case) -> tuple[Outcome, Any]:
        metric = AnswerAccuracy(llm=example("ragas", url, OWN_PAGE)["llm"])
        result = loop.run_until_complete(metric.ascore(**fields(case)))
        return of_score(result.value), result.value

    def discrete(case: Case) -> tuple[Outcome, Any]:
        llm = llm_factory(prompts["DiscreteMetric"], client=OpenAI(**server))
        result = DiscreteMetric(name="same", prompt=DISCRETE).score(llm=llm, **fields(case))
        outcomes: dict[Any, Outcome] = {"pass": "pass", "fail": "fail"}
        return outcomes.get(result.value, "error"), result.reason

    show("glue", glue)
    ways = {"AnswerAccuracy": new, "AnswerAccuracy (older)": older, "DiscreteMetric": discrete}
    for way in prompts:
        show(way, ways[way])


main()
