"""A scalar verdict comes out of the service as the judge gives it."""

import pytest

from judging.judge import Judge
from judging.types import JudgeRequest, Verdict
from serve.queue.service import Service
from tests.conftest import Folders
from tests.serve.sockets import serving

ROWS = [
    {"task": "truthful-reward", "question": "Is the mill green?", "response": response}
    for response in ("Yes, it is green.", "No, it is brown.", "Nobody can say so.")
]


def test_a_reward_survives_the_service(tiny_folders: Folders) -> None:
    judge = Judge.load(tiny_folders("qwen3_vl"), dtype="float32", device="cpu")
    expected = list(judge.grade([JudgeRequest.model_validate(row) for row in ROWS]))
    with serving(Service({"tiny": judge})) as client:
        rows = client.post("/judge", json={"requests": ROWS}).json()["verdicts"]
    verdicts = [Verdict.model_validate(verdict) for verdict in rows]
    assert [verdict.score for verdict in verdicts] == [
        pytest.approx(verdict.score) for verdict in expected
    ]
    assert len({verdict.score for verdict in verdicts}) == len(ROWS)
    # Whoever trains on it may well need more digits than people read.
    assert all(verdict.score != round(verdict.score or 0, 6) for verdict in verdicts)
