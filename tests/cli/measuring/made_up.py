"""Answers that people labelled, judges that stop or fail, and the command."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from judging.types import JudgeRequest, Verdict
from tests.cli.made_up import custos, write_lines
from tests.serve.made_up import FakeJudge, row

RESPONSES = ("Paris", "Rome", "Paris?", "Lyon", "in Paris", "Nice")


class UnsteadyJudge(FakeJudge):
    """Stops in its batch of a number, as Ctrl-C does, or fails on rows with 'Rome', if told to."""

    stop_at: int | None = None
    fails = False

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        if self.stop_at == len(self.batches):
            raise KeyboardInterrupt
        return super().grade(requests, **options)

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        if self.fails and "Rome" in request.response:
            return Verdict(id=request.id, status="judge_error", message="the server is down")
        return super().verdict_on(request, confidence)


def label_of(response: str) -> str:
    """People disagree with the judge on 'Paris?'."""
    return "Correct" if "Paris" in response and "?" not in response else "Wrong"


def write_answers(path: Path, num_rows: int, per_group: int = 1) -> Path:
    """Write answers that people labelled; the first row alone has an id."""
    rows = []
    for number in range(num_rows):
        response = RESPONSES[number % len(RESPONSES)]
        fields = {"label": label_of(response), "group": str(number // per_group)}
        rows.append(row(response, **fields, **({} if number else {"id": "first"})))
    return write_lines(path, rows)


def run(data: Path, out: Path, *options: str, judge: str = "run") -> Any:
    return custos("eval", judge, "--data", data, "--out", out, *options)


def report_of(out: Path, name: str = "report.json") -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / name).read_text(encoding="utf-8"))
    return report
