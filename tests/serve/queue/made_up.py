"""Workers of made-up judges, and jobs for them."""

import asyncio
from collections.abc import Callable
from typing import Any

from judging import JudgeRequest
from serve.queue.lanes import Lanes
from serve.queue.worker import ModelJob, Watchdog, Worker
from tests.serve.made_up import FakeJudge, row


def lanes_of(window_tokens: int = 9999) -> Lanes[ModelJob]:
    return Lanes(["a"], max_jobs=99, max_tokens=10**6, window_tokens=window_tokens)


def worker_of(
    judge: FakeJudge,
    lanes: Lanes[ModelJob] | None = None,
    on_window: Callable[[str, int, float], None] = lambda name, count, seconds: None,
    watchdog: Watchdog | None = None,
) -> Worker:
    return Worker({"a": judge}, lanes or lanes_of(), on_window, watchdog or Watchdog(0))


async def ended(worker: Worker) -> None:
    worker.stop()
    await asyncio.to_thread(worker.close)
    await asyncio.sleep(0)


def submitted(worker: Worker, caller: str, kind: Any, name: str, words: int) -> ModelJob:
    request = JudgeRequest.model_validate(row(id=name, response="word " * words))
    job = ModelJob("a", kind, words, request, caller=caller)
    worker.submit(caller, [job])
    return job
