"""Rows of a file as requests."""

from __future__ import annotations

import json
from pathlib import Path

from cli.shared.request_rows import read_requests
from judging import JudgeRequest
from tests.serve.made_up import row


def test_pictures_are_named_relative_to_the_file(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    rows = [row(images=["a/b.png", "data:image/png;base64,xx"]), row()]
    source.write_text("".join(json.dumps(fields) + "\n" for fields in rows))
    [(_, pictured), (_, plain)] = read_requests(source)
    assert isinstance(pictured, JudgeRequest)
    assert isinstance(plain, JudgeRequest)
    assert pictured.images == (str(tmp_path.resolve() / "a/b.png"), "data:image/png;base64,xx")
    assert plain.images == ()
