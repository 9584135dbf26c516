"""Benchmark files, a judge of any task, and the command."""

import json
import re
from pathlib import Path
from typing import Any

from judging.errors import CustosError
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest, Verdict
from tests.cli.made_up import custos
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.clients.remote.test_judge import better
from tests.serve.made_up import FakeJudge


class Grader(FakeJudge):
    """Gives the best label of any task if the response says "right", the last one otherwise."""

    def __init__(self, tasks: tuple[str, ...] = task_names()) -> None:
        super().__init__(tasks=tasks)
        self.loaded: list[str] = []

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        task = get_task(request.task)
        try:
            task.check(request)
            if task.name not in self.tasks:
                raise CustosError("field 'task': not trained for it")
        except CustosError as error:
            return Verdict(id=request.id, status="invalid", message=str(error))
        labels = task.labels(task.rubric(request))
        label = labels[0] if "right" in request.response else labels[-1]
        fingerprint = self.fingerprint(request)
        return Verdict(id=request.id, status="scored", label=label, judge=fingerprint)


def run(*arguments: str | Path) -> Any:
    return custos("bench", *arguments)


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content, ensure_ascii=False))
    return path


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def grade(folder: Path, rows: Any, *options: str | Path, name: str = "charthal") -> Any:
    """Grade rows of ``folder/in.json`` into ``folder/out.json``."""
    files = ("--responses", write(folder / "in.json", rows), "--out", folder / "out.json")
    return run("grade", name, *files, *options)


def charthal_responses(*said: str) -> dict[str, Any]:
    return {
        f"{number}_0": {
            "figure_id": number,
            "figure_path": f"images/{number}.jpg",
            "subq_idx": 0,
            "q_type": "desc" if number % 2 else "open",
            "q_relation": "irrel",
            "question": "Who won?",
            "ref_answer": "Not in the chart.",
            "response": response,
        }
        for number, response in enumerate(said)
    }


def fail_on(word: str, fake: FakeServer) -> None:
    """Answer as a judge of single responses or of pairs, but refuse what holds a word."""

    def answer(seen: Seen) -> Say:
        if word in seen.text:
            return Say(400, "busy")
        is_pair = len(re.findall(r"(?m)^Response", seen.text)) == 2
        return Say(body=completion(better(seen) if is_pair else "Score: 1"))

    fake.answer = answer
    fake.seen.clear()
