"""inspect_ai's own scorers, in an environment of their own: ``make harness``."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from serve.chat.contract import CAPITAL
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.sockets import serving_judges

PYTHON = Path(__file__).parents[3] / ".venv-harness" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="make harness"),
]

# Whole evaluations fetch a tokenizer's tables from the network; the scorers do not.
SCRIPT = """
import asyncio, json, sys
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Target, model_graded_fact, model_graded_qa
from inspect_ai.solver import TaskState

url, question, target, *responses = sys.argv[1:]

async def grades(scorer):
    for response in responses:
        output = ModelOutput.from_content("any", response)
        state = TaskState("any", 1, 1, question, [], output=output)
        score = await scorer(state, Target(target))
        yield [str(score.value), score.explanation]

async def main():
    grader = get_model("openai-api/custos/custos/qa", base_url=url + "/v1", api_key="any")
    for scorer in (model_graded_qa(model=grader), model_graded_fact(model=grader)):
        print(json.dumps([grade async for grade in grades(scorer)]))

asyncio.run(main())
"""


def test_its_scorers_read_our_verdicts(tmp_path: Path) -> None:
    responses = (CAPITAL.right, CAPITAL.wrong, "GRADE: C", "downgrade: insufficient")
    with serving_judges({"knowing": KnowingJudge()}) as url:
        done = subprocess.run(
            [PYTHON, "-c", SCRIPT, url, CAPITAL.question, CAPITAL.reference, *responses],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines()[-2:]:
        assert json.loads(line) == [["C", "GRADE: C"], *[["I", "GRADE: I"]] * 3]
