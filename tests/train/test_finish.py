"""What a finished run leaves beside its adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judging.judge
from judging import Judge
from tests.tiny import save_picture
from tests.train.made_up import example


def test_a_calibration_split_with_pictures_is_read_some_at_a_time(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    judge = Judge.load(small, device="cpu", dtype="float32")
    rows = [example(i, images=(picture,) if i == 4 else ()) for i in range(7)]
    expected = judge.logprobs(rows)
    held: list[int] = []
    read = judge._read

    def count(presented: Any, *given: Any) -> Any:
        held.append(len(presented))
        return read(presented, *given)

    monkeypatch.setattr(judge, "_read", count)
    monkeypatch.setattr(judging.judge, "WINDOW", 3)
    np.testing.assert_allclose(judge.logprobs(rows), expected, rtol=1e-5, atol=1e-5)
    assert held == [3, 3, 1]
