"""From people's pairs to a tournament without references: critiques, training, matches."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from cli.main import app
from judging.files.records import read_records
from judging.types import LabelledExample, Verdict
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.conftest import Folders
from train import truthful_judge

LABEL = re.compile(r"Label people gave: (A|B|None)")


def custos(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def critic(seen: Seen) -> Say:
    """A strong model that writes a short critique and ends in people's label."""
    [label] = LABEL.findall(seen.text)
    return Say(
        body=completion(
            f"<critique>Both are short.</critique><label>{label}</label>"
            "<confidence>0.9</confidence>"
        )
    )


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def critiques(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs with a reference answer, and critiques of them, in the public format."""
    folder = tmp_path_factory.mktemp("critiques")
    pairs = [
        {
            "id": f"p{n}",
            "task": "truthful-pair",
            "question": f"How many boats are in picture {n}?",
            "references": [f"{n} boats"],
            "response_a": f"{n} boats",
            "response_b": "nine gardens",
            "label": ("A", "B", "None")[n % 3],
        }
        for n in range(12)
    ]
    source = write_lines(folder / "pairs.jsonl", pairs)
    with FakeServer().running() as fake:
        fake.answer = critic
        done = custos(
            *("prep", "critiques", "--source", source, "--base-url", fake.url),
            *("--model", "strong", "--out", folder / "written"),
        )
    assert done.exit_code == 0, done.output
    return folder / "written" / "conversations.jsonl"


def train(folder: Path, critiques: Path, shown: str, backbone: str) -> Path:
    """Train a judge on critiques whose rows keep their reference answers, or do not."""
    done = custos(
        *("prep", "truthful", "--source", critiques, "--out", folder / "data"),
        *("--reference-answer", shown, "--val", 4, "--cal", 0, "--test", 0),
    )
    assert done.exit_code == 0, done.output
    recipe = {
        "backbone": backbone,
        "data": {
            "train": [str(folder / "data" / "train.jsonl")],
            "val": str(folder / "data" / "val.jsonl"),
        },
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.0},
        "optim": {"lr": 1e-2, "batch_size": 8, "epochs": 1},
        "run": {"output": str(folder / "judge"), "precision": "fp32"},
    }
    (folder / "tiny.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    truthful_judge.main(["--config", str(folder / "tiny.yaml")])
    return folder / "judge"


def play(folder: Path, judge: Path, *options: str) -> Result:
    """Let two models meet that give the same two answers, each to another question."""
    items = [
        {
            "question_id": f"q{n}",
            "question": "How many boats?",
            "options": ["1", "2"],
            "answer": "A",
        }
        for n in range(2)
    ]
    models = []
    for model, texts in (("x", ("two boats", "nine")), ("y", ("nine", "two boats"))):
        rows = [{"question_id": f"q{n}", "response": text} for n, text in enumerate(texts)]
        file = write_lines(folder / f"{model}.jsonl", rows)
        models += ["--responses", f"{model}={file}"]
    return custos(
        *("bench", "tournament", "truthfulvqa"),
        *("--items", write_lines(folder / "items.jsonl", items)),
        *(*models, "--judge", judge, "--out", folder / "matches.jsonl", *options),
    )


def test_a_judge_of_hidden_references_plays_without_any(
    critiques: Path, tiny_folders: Folders, tmp_path: Path
) -> None:
    judge = train(tmp_path, critiques, "hidden", tiny_folders("qwen2_5_vl"))
    rows = [row for _, row in read_records(tmp_path / "data" / "train.jsonl", LabelledExample)]
    assert {row.references for row in rows} == {()}
    assert all(row.critique == "Both are short." for row in rows)
    done = play(tmp_path, judge)
    assert done.exit_code == 0, done.output
    assert "2 matches on 2 questions" in done.output
    verdicts = [verdict for _, verdict in read_records(tmp_path / "matches.jsonl", Verdict)]
    for verdict in verdicts:
        assert verdict.rubric == "truthful-pair/plain"
        assert verdict.probabilities and verdict.critique is not None
    first, second = (verdict.probabilities for verdict in verdicts)
    assert first["A"] == pytest.approx(second["B"], abs=1e-5), "the models swapped their answers"


def test_a_judge_of_shown_references_refuses_to_play_without(
    critiques: Path, tiny_folders: Folders, tmp_path: Path
) -> None:
    judge = train(tmp_path, critiques, "shown", tiny_folders("qwen2_5_vl"))
    done = play(tmp_path, judge)
    assert done.exit_code == 1
    assert "was trained for truthful-pair under reference, not plain" in done.output
    assert "give a reference" in done.output
    (tmp_path / "matches.jsonl.partial").unlink()
    assert play(tmp_path, judge, "--with-reference").exit_code == 0
