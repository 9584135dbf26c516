"""Files of the user's own that bear the names of outputs are left alone, before a model is asked.

The address of the model's server is one where nobody listens.
"""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from data_prep.splits.manifest import write_with_manifest
from judging.errors import CustosError
from judging.files.records import read_records
from judging.types import LabelledExample
from tests.cli.prep.made_up import run, write_rows
from tests.clients.fake_server import FakeServer, Say, completion

SERVER = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
CONSTRUCT = "construct"
ROWS = [
    {
        **{"id": f"q/{n}", "question": "How many?", "references": ["4"], "response": str(n)},
        **{"answer": "4", "metadata": {"item": "q", "answerer": f"m{n}"}},
    }
    for n in range(4)
]
PAIR = {"task": "truthful-pair", "question": "Q?", "response_a": "2", "response_b": "3"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with rows to work on, and go there."""
    monkeypatch.chdir(tmp_path)
    write_rows(Path("items.jsonl"), [{name: row[name] for name in PLAIN} for row in ROWS])
    write_rows(
        Path("rows.jsonl"), [{k: v for k, v in row.items() if k != "answer"} for row in ROWS]
    )
    write_rows(Path("pairs.jsonl"), [{**PAIR, "label": "A"}])
    write_rows(Path("graded.jsonl"), [{"id": row["id"], "status": "scored"} for row in ROWS])
    Path("sheet.csv").write_text("id,score\n")
    return tmp_path


PLAIN = ("id", "question", "answer")
GRADED = ("--graded", "graded.jsonl")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("val.jsonl", ("evouna", "--source", "not-even-read.json")),
        ("twins.jsonl", ("twins", "--rows", 4)),
        ("items.jsonl", ("chartom", "--pairs", 1)),
        ("rows.jsonl", ("critiques", "--source", "pairs.jsonl", *SERVER)),
        ("rows.jsonl", (CONSTRUCT, "respond", "--in", "items.jsonl", *SERVER)),
        ("verdicts.json", (CONSTRUCT, "verdicts", "--in", "rows.jsonl", *GRADED)),
        (
            "agreement.json",
            (CONSTRUCT, "collect", "hieval-qs", "--in", "rows.jsonl", "--sheet", "sheet.csv"),
        ),
    ],
)
def test_files_in_a_folder(folder: Path, name: str, command: tuple[object, ...]) -> None:
    out = folder / "out"
    out.mkdir()
    (out / name).write_text("mine")
    with pytest.raises(CustosError) as refused:
        run(*command, "--out", out)
    assert f"({name})" in str(refused.value)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("train.jsonl", ("table", "out/train.jsonl")),
        ("train.jsonl", ("hard", "--source", "out")),
        ("train.jsonl", ("evouna", "--source", "out/train.jsonl")),
        ("train.jsonl", ("truthful", "--source", "link.jsonl")),
        ("test.jsonl", ("hieval", "--source", "out")),
        ("test.jsonl", ("error-types", "--source", "rows.jsonl", "--hard", "out/test.jsonl")),
        ("rows.jsonl", ("critiques", "--source", "out/rows.jsonl", *SERVER)),
        ("rows.jsonl", (CONSTRUCT, "respond", "--in", "out/rows.jsonl", *SERVER)),
        (
            "disagreements.jsonl",
            (
                *(CONSTRUCT, "collect", "hieval-qs", "--in", "out/disagreements.jsonl"),
                *("--sheet", "sheet.csv"),
            ),
        ),
    ],
)
def test_no_command_replaces_what_it_reads(
    folder: Path, name: str, command: tuple[object, ...]
) -> None:
    with write_with_manifest(folder / "out", source={}, command="custos prep ..."):
        (folder / "out" / name).write_text("rows of an earlier command")
    (folder / "link.jsonl").symlink_to(folder / "out" / name)
    with pytest.raises(CustosError) as refused:
        run(*command, "--out", "out")
    source = "link.jsonl" if "link.jsonl" in command else f"out/{name}"
    assert f"{source} lies there" in str(refused.value)
    assert (folder / "out" / name).read_text() == "rows of an earlier command"


@pytest.mark.parametrize(
    ("option", "command"),
    [
        ("--out", ("sheet", "hieval-qs", "--in", "rows.jsonl")),
        ("--out", ("pair", "--in", "rows.jsonl")),
        ("--scores", ("pair", "--in", "rows.jsonl", "--out", "new.jsonl")),
        (
            "--out",
            (
                *("screen", "--in", "items.jsonl", "--responses", "rows.jsonl"),
                *("--verdicts", "verdicts.json"),
            ),
        ),
    ],
)
def test_a_single_file(folder: Path, option: str, command: tuple[object, ...]) -> None:
    out = folder / "mine.csv"
    out.write_text("id,label\n1,Correct\n")
    with pytest.raises(CustosError, match=f"^{option} '.*mine.csv': exists .*; name a new file$"):
        run(CONSTRUCT, *command, option, out)
    assert out.read_text() == "id,label\n1,Correct\n"
    assert not Path("new.jsonl").exists()


@pytest.mark.parametrize("out", ["./kept.jsonl", "link.jsonl"])
def test_screening_again_does_not_cut_the_file(folder: Path, out: str) -> None:
    kept = folder / "kept.jsonl"
    write_rows(kept, [{"id": "q", "question": "How many?", "answer": "4", "right_answers": []}])
    before = kept.read_bytes()
    (folder / "link.jsonl").symlink_to(kept)
    command = ("screen", "--in", "kept.jsonl", "--responses", "rows.jsonl")
    with pytest.raises(CustosError, match=f"^--out '{Path(out)}': that is another file of this"):
        run(CONSTRUCT, *command, "--verdicts", "verdicts.json", "--out", out)
    assert kept.read_bytes() == before


KEY = "sk-do-not-show-me-0123456789"


GOOD = "<critique>A is right.</critique><label>A</label><confidence>.83</confidence>"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        server.answer = lambda seen: Say(body=completion(GOOD))
        yield server


def run_critiques(*arguments: object) -> Any:
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
    return run_critiques("critiques", *where, *options)


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
    assert "kept: 2 (2 A)" in result.stdout and "cost 0.0011" in result.stdout
    assert "skipped: row 'pairs-5': field 'label'" in result.stderr
    rows = [row for _, row in read_records(tmp_path / "out" / "rows.jsonl", LabelledExample)]
    assert [row.id for row in rows] == ["pairs-1", "pairs-4"]
    assert all(seen.headers["authorization"] == f"Bearer {KEY}" for seen in fake.seen)
    written = "".join(path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file())
    assert KEY not in written + result.output + caplog.text

    critiques(source, fake, tmp_path / "out", *options)
    assert len(fake.seen) == 4


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
