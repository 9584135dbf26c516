"""lighteval: its judges of SimpleQA and HLE, and our metric."""

from __future__ import annotations

import os
from typing import Any

from lighteval.metrics import apply_metric
from lighteval.metrics.utils.judge_utils import (
    get_judge_prompt_simpleqa,
    process_judge_response_simpleqa,
)
from lighteval.metrics.utils.llm_as_judge import JudgeLM
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from lighteval.tasks.tasks import hle

from tests.harness.program import Case, Outcome, arguments, example, of_score, show


def main() -> None:
    url, prompts = arguments()
    os.environ |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "any"}
    metric = example("lighteval", url)["metric"]

    def glue(case: Case) -> tuple[Outcome, Any]:
        doc = Doc(query=case.question, choices=[case.reference], gold_index=0)
        [scores] = apply_metric([ModelResponse(text=[case.response])], [doc], [metric])
        mean = metric.get_corpus_aggregations()["judged"]([scores["judged"]])
        return of_score(float(mean)), scores

    def asked(judge: JudgeLM) -> Any:
        judge.API_MAX_RETRY = 1

        def conclude(case: Case) -> tuple[Outcome, Any]:
            given: Any = [case.question], [case.response], [None], [case.reference]
            [score], _, reply = judge.evaluate_answer_batch(*given)
            if isinstance(score, dict):  # HLE's
                score = float("yes" in score["correct"])
            return of_score(float(score)), reply

        return conclude

    show("glue", glue)
    for way, name in prompts.items():
        options: dict[str, Any] = {
            "templates": get_judge_prompt_simpleqa,
            "process_judge_response": process_judge_response_simpleqa,
        }
        if way == "HLE":
            options = {
                "templates": hle.get_judge_prompt,
                "process_judge_response": hle.process_judge_response_hle,
                "response_format": hle.ExtractedAnswer,
            }
        show(way, asked(JudgeLM(model=name, judge_backend="openai", api_key="any", **options)))


main()
