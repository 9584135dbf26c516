"""Judged pairs in the public format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.main import app
from judging.files.records import read_records
from judging.types import LabelledExample

GOOD = "<critique>A is right.</critique><label>A</label><confidence>.83</confidence>"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["prep", *map(str, arguments)])


def test_truthful(tmp_path: Path) -> None:
    def row(number: int, heading: str = "[[Question]]") -> dict[str, Any]:
        asked = f"<image>{heading}\nWhat is item {number}?[[Response A]]\nx[[Response B]]\ny"
        turns = (("system", "Judge."), ("user", asked), ("assistant", GOOD))
        messages = [{"role": role, "content": content} for role, content in turns]
        return {"messages": messages, "images": [f"images/{number}.png"]}

    source = tmp_path / "judge.json"
    source.write_text(json.dumps([*(row(i) for i in range(40)), row(40, "Ask:")]))
    options = ("--test", 10, "--allow-dropped")
    result = run("truthful", "--source", source, "--out", tmp_path / "out", *options)
    assert result.exit_code == 0, result.output
    assert (
        "judge.json row 41: field 'messages': heading '[[Question]]' occurs 0 times"
        in result.stderr
    )
    assert "40 groups of questions" in result.stdout
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == {"bad_rows": 1, "filtered": 0}
    assert manifest["outputs"]["test.jsonl"]["rows"] == 10
    assert sum(output["rows"] for output in manifest["outputs"].values()) == 40
    [first, *_] = read_records(tmp_path / "out" / "test.jsonl", LabelledExample)
    assert (first[1].label, first[1].critique) == ("A", "A is right.")

    result = run(
        *("truthful", "--source", source, "--out", tmp_path / "refused"),
        *("--question", "Ask:"),
    )
    assert result.exit_code == 2
    assert "row 1: field 'messages': heading 'Ask:' occurs 0 times" in result.stderr


def test_the_reference_is_shown_or_not_as_asked(tmp_path: Path) -> None:
    """Appendix F.2 shows none; a judge may be trained for either, or for both."""
    rows = []
    for number in range(20):
        asked = (
            f"<image>[[Question]]\nWhat is item {number}?[[Reference Answer]]\nz"
            "[[Response A]]\nx[[Response B]]\ny"
        )
        turns = (("user", asked), ("assistant", GOOD))
        messages = [{"role": role, "content": content} for role, content in turns]
        rows.append({"messages": messages, "images": [f"images/{number}.png"]})
    source = tmp_path / "judge.json"
    source.write_text(json.dumps(rows))
    for shown, with_one, without in (("shown", 20, 0), ("hidden", 0, 20), ("both", 20, 20)):
        out = tmp_path / shown
        result = run("truthful", "--source", source, "--out", out, "--reference-answer", shown)
        assert result.exit_code == 0, result.output
        examples = [
            example
            for split in ("train", "val", "cal", "test")
            for _, example in read_records(out / f"{split}.jsonl", LabelledExample)
        ]
        assert sum(bool(example.references) for example in examples) == with_one
        assert sum(not example.references for example in examples) == without
    by_split = {
        split: {
            e.question
            for _, e in read_records(tmp_path / "both" / f"{split}.jsonl", LabelledExample)
        }
        for split in ("train", "test")
    }
    assert not by_split["train"] & by_split["test"]
