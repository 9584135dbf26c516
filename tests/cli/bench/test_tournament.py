"""Tournaments: from files to the ranking, what is kept, refused and graded again."""

import errno
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from judging.files.records import read_records
from judging.types import LabelledExample, Verdict
from tests.cli.bench.made_up import fail_on, read, run, write
from tests.cli.made_up import succeed, write_lines
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from train import truthful_judge

REPOSITORY = Path(__file__).parents[3]
LABEL = re.compile(r"Label people gave: (A|B|None)")


def files_of(folder: Path, items: list[dict[str, Any]], **models: str) -> tuple[str | Path, ...]:
    """Write items and each model's answers to them, which are apart by spaces."""
    options: list[str | Path] = ["--items", write(folder / "items.json", items)]
    for model, texts in models.items():
        answers = zip(items, texts.split(), strict=True)
        rows = [{"question_id": row["question_id"], "response": text} for row, text in answers]
        options += ["--responses", f"{model}={write(folder / f'{model}.json', rows)}"]
    return "tournament", "truthfulvqa", *options


@pytest.fixture
def play(fake: FakeServer, tmp_path: Path) -> tuple[str | Path, ...]:
    """A tournament of three models on three questions: nine matches, each asked in both orders."""
    items = [{"question_id": f"q{n}", "question": "What?"} for n in range(3)]
    files = files_of(tmp_path, items, x="9 1 7", y="5 7 1", z="3 3 3")
    judge = ("--judge", fake.url, "--model", "m", "--task", "truthful-pure-label")
    fail_on("nothing", fake)
    return *files, *judge, "--out", tmp_path / "m.jsonl", "--json", tmp_path / "table.json"


def test_from_files_to_the_win_matrix(
    fake: FakeServer, play: tuple[str | Path, ...], tmp_path: Path
) -> None:
    done = succeed("bench", *play)
    out, table = tmp_path / "m.jsonl", read(tmp_path / "table.json")
    # x 9 1 7, y 5 7 1, z 3 3 3: who says more wins
    for first, second in (("x", "y"), ("x", "z"), ("y", "z")):
        assert table["win_rate"][first][second]["value"] == pytest.approx(2 / 3)
        assert table["win_rate"][second][first]["value"] == pytest.approx(1 / 3)
    assert list(table["models"]) == ["x", "y", "z"]
    assert len(out.read_text().splitlines()) == 9
    assert len(fake.seen) == 18  # both orders
    assert "9 matches on 3 questions: 9 scored" in done.stdout
    # Many resamples hold no win or no loss of a model.
    assert f"{1000 - table['draws']} of 1,000 resamples" in done.stdout
    assert {row["rating"]["low"] for row in table["models"].values()} == {None}

    again = ("--out", tmp_path / "again.jsonl", "--against", out)
    done = run(*play[:-4], *again, "--json", tmp_path / "table.json")
    assert f"Kendall's tau-b with {out}: 1 (" in done.stdout
    assert f"same outcome as {out}: 1 (" in done.stdout
    assert read(tmp_path / "table.json")["agreement"]["matches"] == 9


def test_people_on_some_matches_correct_the_ranking(
    play: tuple[str | Path, ...], tmp_path: Path
) -> None:
    ids = [f"q{n}/{pair}" for n in range(3) for pair in ("x/y", "x/z", "y/z")]
    labels = ["B", "B", "", "A", "None", "B", "B", "tie", "B"]
    rows = [{"id": id, "label": label} for id, label in zip(ids, labels, strict=True)]
    people = write(tmp_path / "people.json", rows)
    refused = run(*play, "--people", people)
    assert refused.exit_code == 2 and "--random-sample" in refused.stderr
    done = succeed("bench", *play, "--people", people, "--random-sample")
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


def test_names_in_brackets_are_printed_as_they_are(play: tuple[str | Path, ...]) -> None:
    named = [str(text).replace("x=", "x[low]=").replace("y=", "y[/high]=") for text in play]
    done = succeed("bench", *named)
    assert done.stdout.count("x[low]") == done.stdout.count("y[/high]") == 3


def test_a_tournament_is_kept_until_it_is_ranked(
    fake: FakeServer, play: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, value: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("cli.bench.tournament.write_json", full)
        refused = run(*play)
    assert refused.exit_code == 2
    assert len(fake.seen) == 18
    succeed("bench", *play)
    assert len(fake.seen) == 18
    assert not (tmp_path / "m.jsonl.partial").exists()


def test_what_a_ranking_is_held_against_is_read_before_anyone_is_asked(
    fake: FakeServer, play: tuple[str | Path, ...], tmp_path: Path
) -> None:
    (tmp_path / "other.jsonl").write_text('{"id": "q0/x/y", "status": "scored", "label": "A"}\n')
    for name, fault in (("typo", "no such file"), ("other", "on the same matches")):
        done = run(*play, "--against", tmp_path / f"{name}.jsonl")
        assert done.exit_code == 2
        assert f"{name}.jsonl" in done.stderr and fault in done.stderr
    assert fake.seen == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--out", "x.json"), "--out 'x.json': that is another file"),
        (("--out", "new.json"), "--out 'new.json': expected a file ending in .jsonl"),
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
    files = files_of(Path(), [{"question_id": "q0", "question": "What?"}], x="1", y="1")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    judge = ("--judge", fake.url, "--model", "m")
    done = run(*files, *judge, "--out", "m.jsonl", *options)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {said}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert fake.seen == []


def test_the_documented_tournament_reads_the_recipes_judge_as_it_was_trained() -> None:
    recipe: Any = yaml.safe_load((REPOSITORY / "recipes/truthful_judge.yaml").read_text())
    shown = re.sub(r"[│\n]+", " ", run("tournament", "--help").stdout)
    for text in (shown, (REPOSITORY / "docs/benchmarks.md").read_text()):
        line = " ".join(text.replace("\\\n", " ").split())
        [example] = re.findall(r"custos bench tournament .*?\.jsonl", line)
        assert f"--judge {recipe['run']['output']} --critique" in example


def critic(seen: Seen) -> Say:
    """A strong model that writes a short critique and ends in people's label."""
    [label] = LABEL.findall(seen.text)
    said = f"<critique>Both are short.</critique><label>{label}</label>"
    return Say(body=completion(f"{said}<confidence>0.9</confidence>"))


def test_a_judge_of_hidden_references_plays_without_any(
    fake: FakeServer, small: str, tmp_path: Path
) -> None:
    """From pairs with reference answers through critiques and training to a tournament."""
    pair: dict[str, Any] = {"task": "truthful-pair", "response_b": "nine gardens"}
    pairs = [
        pair
        | {"id": f"p{n}", "question": f"How many boats are in picture {n}?"}
        | {"references": [f"{n} boats"], "response_a": f"{n} boats", "label": ("A", "B")[n % 2]}
        for n in range(12)
    ]
    source, data, judge = (tmp_path / name for name in ("pairs.jsonl", "data", "judge"))
    write_lines(source, pairs)
    fake.answer = critic
    server = ("--base-url", fake.url, "--model", "strong")
    succeed("prep", "critiques", "--source", source, *server, "--out", tmp_path / "written")
    written = ("--source", tmp_path / "written" / "conversations.jsonl", "--out", data)
    sizes = ("--val", 4, "--cal", 0, "--test", 0)
    succeed("prep", "truthful", *written, "--reference-answer", "hidden", *sizes)
    recipe = {
        "backbone": small,
        "data": {"train": [str(data / "train.jsonl")], "val": str(data / "val.jsonl")},
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.0},
        "optim": {"lr": 1e-2, "batch_size": 8, "epochs": 1},
        "run": {"output": str(judge), "precision": "fp32"},
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    truthful_judge.main(["--config", str(tmp_path / "tiny.yaml")])
    rows = [row for _, row in read_records(data / "train.jsonl", LabelledExample)]
    assert {row.references for row in rows} == {()}
    assert all(row.critique == "Both are short." for row in rows)
    # Two models give the same two answers, each to another question.
    question = {"question": "How many boats?", "options": ["1", "2"], "answer": "A"}
    items = [{"question_id": f"q{n}", **question} for n in range(2)]
    files = files_of(tmp_path, items, x="two nine", y="nine two")
    done = succeed("bench", *files, "--judge", judge, "--out", tmp_path / "matches.jsonl")
    assert "2 matches on 2 questions" in done.output
    verdicts = [verdict for _, verdict in read_records(tmp_path / "matches.jsonl", Verdict)]
    for verdict in verdicts:
        assert verdict.rubric == "truthful-pair/plain"
        assert verdict.probabilities and verdict.critique is not None
    first, second = (verdict.probabilities for verdict in verdicts)
    assert first["A"] == pytest.approx(second["B"], abs=1e-5), "the models swapped their answers"
