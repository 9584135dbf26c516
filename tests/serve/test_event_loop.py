"""What the thread that answers everybody must not do itself, counted in its own processor time."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from judging import Judge
from serve.queue.service import Service
from tests.conftest import Folders
from tests.serve.chat.made_up import qa
from tests.serve.sockets import serving

NUM_PROMPTS = 4


@pytest.fixture
def callback_seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Processor time of every step that an event loop makes, however busy the machine is."""
    seconds: list[float] = []
    run = asyncio.events.Handle._run

    def timed_run(handle: asyncio.events.Handle) -> None:
        start = time.thread_time()
        run(handle)
        seconds.append(time.thread_time() - start)

    monkeypatch.setattr(asyncio.events.Handle, "_run", timed_run)
    return seconds


def test_long_chat_prompts_are_read_and_counted_by_other_threads(
    tiny_folders: Folders, callback_seconds: list[float]
) -> None:
    """Prompts of .9 MB: no step of the loop takes a fourth of what it costs to count one."""
    judge = Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")
    body = qa("It is Paris. " * 15_000, question="Which is the capital of France?")
    body["messages"].insert(0, {"role": "system", "content": "As said before: " * 43_000})
    text = "".join(message["content"] for message in body["messages"])
    count, start = judge.encoder.counter(), time.thread_time()
    assert count(text) > 100_000
    counting = time.thread_time() - start
    with serving(Service({"tiny": judge})) as client, ThreadPoolExecutor(NUM_PROMPTS) as pool:
        post, path = client.post, "/v1/chat/completions"
        calls = [pool.submit(post, path, json=body, timeout=300) for _ in range(NUM_PROMPTS)]
        while not all(call.done() for call in calls):
            assert client.get("/health/live").status_code == 200
            time.sleep(0.01)
        statuses = [call.result().status_code for call in calls]
    assert statuses == [200] * NUM_PROMPTS
    assert len(callback_seconds) > 100
    assert max(callback_seconds) < counting / 4
