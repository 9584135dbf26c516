"""Critiques by a model on a server."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.files.records import read_records
from judging.types import LabelledExample
from tests.clients.fake_server import FakeServer, Say, completion

KEY = "sk-do-not-show-me-0123456789"


GOOD = "<critique>A is right.</critique><label>A</label><confidence>.83</confidence>"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        server.answer = lambda seen: Say(body=completion(GOOD))
        yield server


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["prep", *map(str, arguments)])


def write_pairs(folder: Path, *labels: str, **fields: Any) -> Path:
    path = folder / "pairs.jsonl"
    rows = [
        {
            "task": "truthful-pair",
            "question": f"Q{number}?",
            "response_a": "Two.",
            "response_b": "Three.",
            "label": label,
            **fields,
        }
        for number, label in enumerate(labels)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def critiques(source: Path, fake: FakeServer, out: Path, *options: object) -> Any:
    where = ("--source", source, "--base-url", fake.url, "--model", "writer", "--out", out)
    return run("critiques", *where, *options)


@pytest.mark.parametrize(("options", "is_shown"), [((), False), (("--show-reasons",), True)])
def test_the_writer_sees_peoples_reasons_only_if_asked(
    fake: FakeServer, tmp_path: Path, options: tuple[str, ...], is_shown: bool
) -> None:
    source = write_pairs(tmp_path, "A", tags=["B: rude"], metadata={"rationale": "It is a rock."})
    assert critiques(source, fake, tmp_path / "out", *options).exit_code == 0
    [seen] = fake.seen
    assert "rude" in seen.text
    assert ("It is a rock." in seen.text) == is_shown


def test_critiques(
    fake: FakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("WRITER_KEY", KEY)
    source = write_pairs(tmp_path, "A", "B", "None", "A", "Better")
    options = ("--key-env", "WRITER_KEY", "--prompt-price", 2, "--completion-price", 8)
    with caplog.at_level(logging.DEBUG):
        result = critiques(source, fake, tmp_path / "out", *options)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "kept: 2 (2 A)",
        "rejected: 2 (2 label differs)",
        "tokens: 400 prompt and 40 completion, cost 0.0011",
        str(tmp_path / "out"),
    ]
    assert "skipped: row 'pairs-5': field 'label': 'Better' is not one of A" in result.stderr
    rows = [row for _, row in read_records(tmp_path / "out" / "rows.jsonl", LabelledExample)]
    assert [row.id for row in rows] == ["pairs-1", "pairs-4"]
    assert all(seen.headers["authorization"] == f"Bearer {KEY}" for seen in fake.seen)
    written = "".join(path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file())
    assert KEY not in written + result.output + caplog.text

    critiques(source, fake, tmp_path / "out", *options)
    assert len(fake.seen) == 4


def test_a_refused_key_is_one_line(
    fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITER_KEY", KEY)
    fake.answer = lambda seen: Say(401, f"wrong key {KEY}")
    source = write_pairs(tmp_path, "A")
    result = critiques(source, fake, tmp_path / "out", "--key-env", "WRITER_KEY")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        f"error: {fake.url}: the server refuses the API key (401); "
        "--key-env names the variable that holds the key"
    )
    assert KEY not in result.output


def test_mistakes_before_anything_is_asked(fake: FakeServer, tmp_path: Path) -> None:
    source = write_pairs(tmp_path, "A")
    result = critiques(source, fake, tmp_path / "out", "--key-env", "NO_SUCH_KEY")
    assert result.exit_code == 2
    assert "error: --key-env 'NO_SUCH_KEY': no such environment variable" in result.stderr
    source = write_pairs(tmp_path, "A", response_a=" ")
    result = critiques(source, fake, tmp_path / "out")
    assert result.exit_code == 2
    assert "skipped: row 'pairs-1': a response is empty" in result.stderr
    assert "there are no labelled rows of task 'truthful-pair'" in result.stderr
    assert fake.seen == []
