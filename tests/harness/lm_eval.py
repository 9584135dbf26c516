"""lm_eval: a task whose ``process_results`` is ours, evaluated whole."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from tests.harness.program import ADDRESS, Case, Outcome, arguments, blocks, of_score, show

TASK = """
task: judged_questions
dataset_path: json
dataset_kwargs:
  data_files: {{test: {rows}}}
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
"""


class Canned(LM):  # type: ignore[misc]
    """A model that always answers the same."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        return [self.answer] * len(requests)

    def loglikelihood(self, requests: list[Any]) -> list[Any]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any]) -> list[Any]:
        raise NotImplementedError


def main() -> None:
    url, _ = arguments()
    folder = Path(mkdtemp())
    [script], [settings] = blocks("lm_eval"), blocks("lm_eval", "yaml")
    (folder / "utils.py").write_text(script.replace(ADDRESS, url))
    rows = folder / "rows.jsonl"
    (folder / "judged_questions.yaml").write_text(TASK.format(rows=rows) + settings)

    def conclude(case: Case) -> tuple[Outcome, Any]:
        rows.write_text(json.dumps({"question": case.question, "answer": case.reference}) + "\n")
        found = simple_evaluate(
            Canned(case.response),
            tasks=["judged_questions"],
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
            bootstrap_iters=0,
        )
        score = found["results"]["judged_questions"]["judged,none"]
        return of_score(score), score

    show("glue", conclude)


main()
