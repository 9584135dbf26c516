"""Tournaments: what is kept, refused and graded again."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.bench.made_up import fail_on, read, run, write
from tests.clients.fake_server import FakeServer

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def play(fake: FakeServer, tmp_path: Path) -> list[str | Path]:
    """A tournament of three models on three questions: nine matches, each asked in both orders."""
    items = [{"question_id": f"q{n}", "question": "What?"} for n in range(3)]
    command: list[str | Path] = ["tournament", "truthfulvqa"]
    command += ["--items", write(tmp_path / "items.json", items)]
    for model, texts in (("x", "917"), ("y", "571"), ("z", "333")):
        rows = [{"question_id": f"q{n}", "response": text} for n, text in enumerate(texts)]
        file = write(tmp_path / f"{model}.json", rows)
        command += ["--responses", f"{model}={file}"]
    command += ["--judge", fake.url, "--model", "m", "--task", "truthful-pure-label"]
    return [*command, "--out", tmp_path / "m.jsonl", "--json", tmp_path / "table.json"]


def test_a_tournament_asks_again_only_for_what_failed(
    fake: FakeServer, play: list[str | Path], tmp_path: Path
) -> None:
    partial = tmp_path / "m.jsonl.partial"
    fail_on("9", fake)  # x against y and z on the first question
    done = run(*play)
    assert (done.exit_code, len(fake.seen)) == (0, 18)
    assert f"2 failed, kept in {partial}; --retry-failed grades them again\n" in done.stderr
    assert read(tmp_path / "table.json")["statuses"] == {"scored": 7, "invalid": 2}
    fail_on("nothing", fake)
    assert run(*play).exit_code == 0
    assert fake.seen == []
    assert run(*play, "--retry-failed").exit_code == 0
    assert len(fake.seen) == 4
    assert read(tmp_path / "table.json")["statuses"] == {"scored": 9}
    assert not partial.exists()


def test_ratings_that_many_resamples_lack_have_no_interval(
    fake: FakeServer, play: list[str | Path], tmp_path: Path
) -> None:
    fail_on("nothing", fake)
    done = run(*play)
    table = read(tmp_path / "table.json")
    assert "ratings have no interval: in " in done.stdout
    assert f"{1000 - table['draws']} of 1,000 resamples" in done.stdout
    assert {row["rating"]["low"] for row in table["models"].values()} == {None}


def test_people_on_some_matches_correct_the_ranking(
    fake: FakeServer, play: list[str | Path], tmp_path: Path
) -> None:
    fail_on("nothing", fake)
    ids = [f"q{n}/{pair}" for n in range(3) for pair in ("x/y", "x/z", "y/z")]
    labels = ["B", "B", "", "A", "None", "B", "B", "tie", "B"]
    rows = [{"id": id, "label": label} for id, label in zip(ids, labels, strict=True)]
    people = write(tmp_path / "people.json", rows)
    done = run(*play, "--people", people)
    assert done.exit_code == 0, done.stderr
    found = read(tmp_path / "table.json")["by_people"]
    assert found["n"] == 8
    assert list(found["models"]) == ["z", "y", "x"]
    assert 1 / 8 <= found["same_winner"] <= 7 / 8
    assert "corrected by people on 8 matches" in done.stdout
    for bad, field in (
        ({"id": "q9/x/y", "label": "A"}, "id"),
        ({"id": ids[0], "label": "C"}, "label"),
    ):
        refused = run(*play, "--people", write(tmp_path / "bad.json", [bad]))
        assert refused.exit_code == 2
        assert f"field '{field}'" in refused.stderr


def test_names_in_brackets_are_printed_as_they_are(
    fake: FakeServer, play: list[str | Path]
) -> None:
    fail_on("nothing", fake)
    named = [str(text).replace("x=", "x[low]=").replace("y=", "y[/high]=") for text in play]
    done = run(*named)
    assert done.exit_code == 0
    assert done.stdout.count("x[low]") == done.stdout.count("y[/high]") == 3


def test_a_tournament_without_a_single_verdict_fails(
    fake: FakeServer, play: list[str | Path], tmp_path: Path
) -> None:
    fail_on("What?", fake)
    done = run(*play)
    assert done.exit_code == 1
    assert done.stderr.endswith(f"error: {tmp_path / 'm.jsonl'}: no row got a verdict\n")
    assert (tmp_path / "m.jsonl.partial").exists()


def test_a_tournament_is_kept_until_it_is_ranked(
    fake: FakeServer, play: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, value: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    fail_on("nothing", fake)
    with monkeypatch.context() as patch:
        patch.setattr("cli.bench.tournament.write_json", full)
        refused = run(*play, "--json", tmp_path / "ranking.json")
    assert refused.exit_code == 2
    assert len(fake.seen) == 18
    assert run(*play).exit_code == 0
    assert len(fake.seen) == 18
    assert not (tmp_path / "m.jsonl.partial").exists()


def test_what_a_ranking_is_held_against_is_read_before_anyone_is_asked(
    fake: FakeServer, play: list[str | Path], tmp_path: Path
) -> None:
    fail_on("nothing", fake)
    done = run(*play, "--against", tmp_path / "typo.jsonl")
    assert done.exit_code == 2
    assert done.stderr == f"error: {tmp_path / 'typo.jsonl'}: no such file\n"
    (tmp_path / "other.jsonl").write_text('{"id": "q0/x/y", "status": "scored", "label": "A"}\n')
    done = run(*play, "--against", tmp_path / "other.jsonl")
    assert done.exit_code == 2
    assert "does not hold the verdicts on the same matches" in done.stderr
    assert fake.seen == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--out", "x.json"), "--out 'x.json': that is another file"),
        (("--out", "new.json"), "--out 'new.json': expected a file ending in .jsonl"),
        (("--out", "y.jsonl"), "--out 'y.jsonl': that is another file"),
        (("--out", "./items.jsonl"), "--out 'items.jsonl': that is another file"),
        (("--json", "items.jsonl"), "--json 'items.jsonl': that is another file"),
        (("--json", "m.jsonl"), "--out 'm.jsonl': that is another file"),
        (("--against", "m.jsonl"), "m.jsonl: no such file"),
    ],
)
def test_a_tournament_overwrites_none_of_its_files(
    fake: FakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"question_id": "q0", "question": "What?", "response": "1"}
    for name in ("items", "x", "y"):
        Path(f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    Path("x.jsonl").rename("x.json")
    Path("x.json").write_text(json.dumps([row]))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    files = ("--items", "items.jsonl", "--responses", "x=x.json", "--responses", "y=y.jsonl")
    judge = ("--judge", fake.url, "--model", "m")
    done = run("tournament", "truthfulvqa", *files, *judge, "--out", "m.jsonl", *options)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {said}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert fake.seen == []


def examples(of: str, text: str) -> list[str]:
    """Commands of a verb in a text, each on one line."""
    lines = " ".join(text.replace("\\\n", " ").split())
    return [found[0] for found in re.finditer(rf"custos bench {of} .*?\.jsonl", lines)]


def test_the_documented_tournament_reads_the_recipes_judge_as_it_was_trained() -> None:
    recipe: Any = yaml.safe_load((REPOSITORY / "recipes/truthful_judge.yaml").read_text())
    shown = re.sub(r"[│\n]+", " ", run("tournament", "--help").stdout)
    for text in (shown, (REPOSITORY / "docs/benchmarks.md").read_text()):
        [example] = examples("tournament", text)
        assert f"--judge {recipe['run']['output']} --critique" in example
