"""The key of a request: what makes a verdict one on something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from clients.kept_verdicts import request_key
from judging import JudgeRequest
from tests.serve.made_up import FakeJudge, row


def test_the_key_is_about_content(tmp_path: Path) -> None:
    judge = FakeJudge()

    def key(**fields: Any) -> str:
        return request_key(judge, JudgeRequest.model_validate(row(**fields)))

    picture = tmp_path / "a.png"
    missing = key(images=[str(picture)])
    Image.new("RGB", (4, 4)).save(picture)
    black = key(images=[str(picture)])
    Image.new("RGB", (4, 4), "white").save(picture)
    assert len({missing, black, key(images=[str(picture)]), key(), key(seed=1)}) == 5
    assert key(metadata={"a": 1, "b": 2}) == key(metadata={"b": 2, "a": 1})
    assert key(variant="a/b") != key(variant="c")
