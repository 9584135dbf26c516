"""OpenAI's client: SimpleQA of simple-evals, and structured replies by both interfaces."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

from openai import OpenAI
from pydantic import BaseModel

from tests.harness.program import Case, Outcome, arguments, show

SIMPLE_EVALS = os.environ.get("CUSTOS_SIMPLE_EVALS", "")
"""A clone of https://github.com/openai/simple-evals, which is in no package index."""
LETTERS: dict[str, Outcome] = {"A": "pass", "B": "fail", "C": "fail"}


class Verdict(BaseModel):
    """A structured reply."""

    reasoning: str
    correct: bool


def grader_template() -> str:
    """Read the published prompt out of its module, whose imports are not needed."""
    source = (Path(SIMPLE_EVALS) / "simpleqa_eval.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GRADER_TEMPLATE":
            [text] = (part for part in ast.walk(node.value) if isinstance(part, ast.Constant))
            return str(text.value).strip()
    raise ValueError("simpleqa_eval.py has no GRADER_TEMPLATE")


def main() -> None:
    url, prompts = arguments()
    client = OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)

    def simpleqa(case: Case) -> tuple[Outcome, Any]:
        content = template.format(
            question=case.question, target=case.reference, predicted_answer=case.response
        )
        reply = client.chat.completions.create(
            model=prompts["SimpleQA"],
            messages=[{"role": "user", "content": content}],
            temperature=0.5,
            max_tokens=1024,
        )
        text = reply.choices[0].message.content or ""
        letter = re.search("(A|B|C)", text)
        return LETTERS[letter[0] if letter else "C"], text

    def by_hand(case: Case) -> str:
        return f"Question: {case.question}\nReference: {case.reference}\nResponse: {case.response}"

    def parse(case: Case) -> tuple[Outcome, Any]:
        reply = client.chat.completions.parse(
            model=prompts["parse"],
            messages=[{"role": "user", "content": by_hand(case)}],
            response_format=Verdict,
        )
        return _of(reply.choices[0].message.parsed)

    def responses(case: Case) -> tuple[Outcome, Any]:
        reply = client.responses.parse(
            model=prompts["responses.parse"], input=by_hand(case), text_format=Verdict
        )
        return _of(reply.output_parsed)

    ways = {"parse": parse, "responses.parse": responses}
    if SIMPLE_EVALS:
        template = grader_template()
        ways = {"SimpleQA": simpleqa, **ways}
    for way in prompts:
        if way in ways:
            show(way, ways[way])


def _of(verdict: Verdict | None) -> tuple[Outcome, Any]:
    if verdict is None:
        return "error", "no verdict"
    return "pass" if verdict.correct else "fail", verdict.reasoning


main()
