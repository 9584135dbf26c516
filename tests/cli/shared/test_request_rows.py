"""Rows of a file as requests."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from cli.shared.tables import read_requests
from judging.types import JudgeRequest, Verdict
from tests.serve.made_up import row
from tests.tiny import save_picture


def test_pictures_are_named_relative_to_the_file(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    (tmp_path / "a").mkdir()
    content = Path(save_picture(tmp_path / "a/b.png", 40, 30)).read_bytes()
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    rows = [row(images=["a/b.png", url]), row()]
    source.write_text("".join(json.dumps(fields) + "\n" for fields in rows))
    [(_, pictured), (_, plain)] = read_requests(source)
    assert isinstance(pictured, JudgeRequest)
    assert isinstance(plain, JudgeRequest)
    assert pictured.images == (str(tmp_path.resolve() / "a/b.png"), url)
    assert plain.images == ()


def test_a_broken_picture_is_known_before_a_judge_is(tmp_path: Path) -> None:
    picture, source = tmp_path / "cut.jpg", tmp_path / "in.jsonl"
    content = Path(save_picture(picture, 300, 200)).read_bytes()
    picture.write_bytes(content[: len(content) // 2])
    source.write_text("".join(json.dumps(row(images=[n])) + "\n" for n in ("cut.jpg", "no.jpg")))
    reasons = {"cut.jpg": "it is broken or cut off", "no.jpg": "there is no such file"}
    for (number, verdict), name in zip(read_requests(source), reasons, strict=True):
        assert isinstance(verdict, Verdict)
        assert (verdict.id, verdict.status) == (str(number), "invalid")
        path = tmp_path.resolve() / name
        message = f"field 'images': '{path}' is not a readable picture: {reasons[name]}"
        assert verdict.message == message


def test_a_risk_of_the_command_goes_before_that_of_a_row(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(fields) + "\n" for fields in (row(risk=0.2), row())))

    def risks(stated: float | None) -> list[float | None]:
        requests = (request for _, request in read_requests(source, None, stated))
        return [request.risk for request in requests if isinstance(request, JudgeRequest)]

    assert risks(None) == [0.2, None]
    assert risks(0.05) == [0.05, 0.05]
