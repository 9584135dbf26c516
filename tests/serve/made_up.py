"""A judge without a model, for the service and the command line."""

import base64
import io
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fastapi.testclient import TestClient
from PIL import Image

from judging import CustosError, JudgeRequest, Verdict
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.tasks import get_task
from judging.types import Pass
from serve.calls.waiting import Deadline
from serve.queue.service import Service


class FakeJudge(Judge):
    """Says Correct if a reference occurs in the response; writes the same critique of everything.

    Waits at its ``gate`` while that is closed. A response with "break" in it raises. Its critique
    never ends while it is ``endless``. Confidence depends on the batch a request is graded in, as a
    model's last digits do.
    """

    encoder: Any = SimpleNamespace(
        counter=lambda: lambda text: len(text.split()),
        pictures=lambda task, request: request.images,
    )
    folder: Path | None = None
    engine: Any = SimpleNamespace(posterior="exact")
    backbone: Any = SimpleNamespace(
        name="embedded@1",
        num_picture_tokens=lambda size: size.pixels // 1024,
        scaled_size=lambda size: None,
        has_random_weights=False,
        context=1_000_000,
    )
    CRITIQUE = "Both say little. The first says less."

    def __init__(
        self, name: str = "fake", tasks: tuple[str, ...] = ("hieval-qs",), pause_s: float = 0.0
    ) -> None:
        self.name = name
        self.card = None
        self.calibration = None
        self.pause_s = pause_s
        self.gate = threading.Event()
        self.gate.set()
        self.endless = False
        self.seen: list[JudgeRequest] = []
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.known_tasks = tasks

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.known_tasks

    def load_untrained(self) -> Judge:
        return Judge.load("untrained")

    @property
    def identity(self) -> str:
        return self.name

    def fingerprint(self, request: JudgeRequest) -> str:
        return f"{self.name}/{request.task}"

    def describe(self) -> dict[str, Any]:
        packages = {"custos": "0.1.0"}
        return {"name": self.name, "tasks": dict.fromkeys(self.tasks, ()), "packages": packages}

    def grade(
        self,
        requests: Iterable[JudgeRequest],
        *,
        progress: bool = False,
        calibrated: bool = True,
        sampling: Any = None,
        on_text: Any = None,
        is_wanted: Any = None,
    ) -> Iterator[Verdict]:
        batch = list(requests)
        self.seen += batch
        self.batches.append([request.id for request in batch])
        self.threads.add(threading.current_thread().name)
        self.gate.wait()
        for request in batch:
            time.sleep(self.pause_s)
            if request.mode == "critique" and on_text:
                for word in re.findall(r"\S+\s?", self.CRITIQUE):
                    on_text(request, Pass(), word)
                while self.endless:
                    time.sleep(0.001)
                    on_text(request, Pass(), "more ")
            yield self.verdict_on(request, 0.9 - len(batch) / 1000)

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        try:
            get_task(request.task).check(request)
        except CustosError as error:
            return Verdict.from_error(error, request)
        if "break" in request.response:
            raise RuntimeError("secret of /root/.ssh at 0x7f00")
        right = any(reference in request.response for reference in request.references)
        label, other = ("Correct", "Wrong") if right else ("Wrong", "Correct")
        return Verdict(
            id=request.id,
            status="scored",
            label=label,
            probabilities={label: confidence, other: 1 - confidence},
            confidence=confidence,
            posterior="exact",
            critique=self.CRITIQUE if request.mode == "critique" else None,
            judge_name=self.name,
            rubric=get_task(request.task).full_rubric(request),
            judge=self.fingerprint(request),
        )


class SlowReader(FakeJudge):
    """Takes a while to count the tokens of each long text, and waits at the gate ``reading``."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.num_counted = 0
        self.reading = threading.Event()
        self.reading.set()
        self.backbone = SimpleNamespace(**{**vars(FakeJudge.backbone), "context": 10_000})

        def count(text: str) -> int:
            self.num_counted += 1
            time.sleep(seconds)
            self.reading.wait(20)
            return 1

        encoder = {**vars(FakeJudge.encoder), "counter": lambda: count}
        self.encoder = SimpleNamespace(**encoder)


def card_of(tasks: Mapping[str, tuple[str, ...]]) -> JudgeCard:
    """The card of a judge that was trained for some rubrics of some tasks."""
    return JudgeCard(backbone="none", backbone_version="none", tasks=dict(tasks), instructions={})


def requests(count: int, **fields: Any) -> list[JudgeRequest]:
    return [JudgeRequest.model_validate(row(id=str(i), **fields)) for i in range(count)]


async def graded(
    service: Service, requests: Sequence[JudgeRequest], judge: str | Sequence[str] = "a"
) -> tuple[Verdict, ...]:
    names = [judge] * len(requests) if isinstance(judge, str) else judge
    checked = [service.checked(*each) for each in zip(requests, names, strict=True)]
    return await service.grade(checked, Deadline(service.limits))


def row(response: str = "Paris", **fields: Any) -> dict[str, Any]:
    return {
        "question": "What is the capital of France?",
        "references": ["Paris"],
        "response": response,
        **fields,
    }


def picture(
    size: tuple[int, int] = (8, 8), kind: str = "png", mode: str = "RGB", color: Any = 0
) -> str:
    """A picture of one colour as a data URL."""
    file = io.BytesIO()
    Image.new(mode, size, color).save(file, kind)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def progressive(size: int, num_scans: int, color: str = "gray") -> str:
    """A progressive JPEG whose last scan is repeated."""
    file = io.BytesIO()
    Image.new("RGB", (size, size), color).save(file, "JPEG", progressive=True)
    content = file.getvalue()
    last = content.rindex(b"\xff\xda")
    scans = content.count(b"\xff\xda")
    repeated = content[:-2] + content[last:-2] * (num_scans - scans) + content[-2:]
    return f"data:image/jpeg;base64,{base64.b64encode(repeated).decode()}"


def refused(client: TestClient, body: Any, status: int = 422) -> tuple[str | None, str]:
    """Field and message of an error, whose body must have the one shape."""
    sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = client.post("/judge", headers={"Content-Type": "application/json"}, **sent)
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    error = answer.json()["error"]
    assert error.keys() == {"type", "message", "field"}
    return error["field"], error["message"]
