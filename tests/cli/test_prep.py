import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.prep.app import app
from judging.errors import CustosError
from judging.records import read_records
from judging.types import LabelledExample

PUBLISHED = Path("/work/shared/data/evouna/NQ.json")
SPLITS = ("train", "val", "cal", "test")


def run(*arguments: object) -> Any:
    """Run the sub-app as ``cli/main.py`` does: mistakes of the user come out as ``CustosError``."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def read(out: Path, split: str) -> list[LabelledExample]:
    return [row for _, row in read_records(out / f"{split}.jsonl", LabelledExample)]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def own_rows(number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": str(i),
            "question": f"What is item {i}?",
            "references": ["thing"],
            "response": "B" if i % 10 == 0 else "It is a thing.",
            "label": "Wrong" if i % 4 == 0 else "Correct",
        }
        for i in range(number)
    ]


def test_evouna(tmp_path: Path) -> None:
    names = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
    rows: list[dict[str, Any]] = [
        {
            "question": f"what is item {i}",
            "golden_answer": "thing",
            "improper": False,
            **{f"answer_{name}": "a thing" for name in names},
            **{f"judge_{name}": i % 4 != 0 for name in names},
        }
        for i in range(100)
    ]
    rows[50]["judge_fid"] = "yes"
    source = tmp_path / "nq.json"
    source.write_text(json.dumps(rows), encoding="utf-8")
    result = run("evouna", "--source", source, "--out", tmp_path / "out")
    assert "nq.json row 51: field 'judge_fid'" in result.stderr
    assert re.search(r"test\s.*60\s.*75\.0%\s.*25\.0%", result.stdout)
    assert {split: len(read(tmp_path / "out", split)) for split in SPLITS} == {
        "train": 375,
        "val": 25,
        "cal": 35,
        "test": 60,
    }
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["source"]["name"] == "nq.json"
    assert manifest["left_out"]["bad_rows"] == 1
    with pytest.raises(CustosError, match="row 51: field 'judge_fid'"):
        run("evouna", "--source", source, "--out", tmp_path / "strict", "--strict")
    assert not (tmp_path / "strict").exists()


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published file is not on this machine")
def test_evouna_as_published(tmp_path: Path) -> None:
    run("evouna", "--source", PUBLISHED, "--out", tmp_path)
    splits = {split: read(tmp_path, split) for split in SPLITS}
    assert sum(map(len, splits.values())) == 15_098
    assert len(splits["test"]) >= 1_500
    for members in splits.values():
        share = sum(e.label == "Correct" for e in members) / len(members)
        assert share == pytest.approx(0.732, abs=0.005)
    groups = [{e.group for e in members} for members in splits.values()]
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_hieval_options(tmp_path: Path) -> None:
    rows = [
        {"q": f"What is item {i}?", "gold": "a|b", "response": "a", "label": i % 3, "model": "m"}
        for i in range(60)
    ]
    result = run(
        *("hieval", "--source", write_rows(tmp_path / "qs.jsonl", rows), "--out", tmp_path / "out"),
        *("--field", "question=q", "--field", "references=gold", "--separator", "|"),
        *("--label", "0=Wrong", "--label", "1=Partial", "--label", "2=Correct"),
        *("--metadata", "answerer=model", "--metadata", "model", "--variant", "tolerance"),
        *("--val", 6, "--cal", 0, "--test", 0.2),
    )
    assert result.exit_code == 0
    assert [len(read(tmp_path / "out", split)) for split in SPLITS] == [42, 6, 0, 12]
    (first, *_) = read(tmp_path / "out", "val")
    assert (first.references, first.variant) == (("a", "b"), "tolerance")
    assert first.metadata == {"answerer": "m", "model": "m"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["counts"]["test"] == {
        label: {"m": 4} for label in ("Correct", "Partial", "Wrong")
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--field", "question"), "--field 'question': expected NAME=VALUE"),
        (("--field", "qestion=q"), "field 'qestion'"),
        (("--label", "1=Right"), "'Right' is not one of Correct, Partial, Wrong"),
        (("--test", "-1"), "field 'test'"),
        (("--test", "inf"), "field 'test'"),
        (("--test", "0.95"), "leave none of"),
    ],
)
def test_mistaken_options(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    rows = [
        {"question": f"Item {i}?", "answer": "a", "response": "a", "label": "Wrong"} for i in "ab"
    ]
    source = write_rows(tmp_path / "qs.jsonl", rows)
    with pytest.raises(CustosError, match=message):
        run("hieval", "--source", source, "--out", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_generic_with_both_filters(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", own_rows(40))
    verdicts = tmp_path / "verdicts.json"
    # Each of two models finds everything Correct: the ten Wrong examples are contested, and two of
    # these (0 and 20) have one-word responses.
    verdicts.write_text(json.dumps({str(i): ["Correct", "Correct"] for i in range(40)}))
    run(
        *("generic", "--source", source, "--out", tmp_path / "out", "--min-words", 3),
        *("--verdicts", verdicts, "--disagreeing", 2, "--models", 2),
    )
    kept = {e.id for split in SPLITS for e in read(tmp_path / "out", split)}
    assert kept == {"4", "8", "12", "16", "24", "28", "32", "36"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == {"bad_rows": 0, "filtered": 32}


def test_unreadable_verdicts(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", own_rows(4))
    with pytest.raises(CustosError, match="verdicts.json: cannot read the verdicts"):
        run(
            "generic",
            "--source",
            source,
            "--out",
            tmp_path,
            "--verdicts",
            tmp_path / "verdicts.json",
        )


def test_many_bad_rows_are_summed_up(tmp_path: Path) -> None:
    rows = [*own_rows(20), *({"question": "no label"} for _ in range(25))]
    source = write_rows(tmp_path / "own.jsonl", rows)
    result = run("generic", "--source", source, "--out", tmp_path / "out")
    lines = result.stderr.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "skipped: 15 more bad rows"


def test_synthetic_tests_on_held_out_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def generate_examples(
        num_rows: int, seed: int, forms: str, worlds: str
    ) -> Iterator[LabelledExample]:
        asked.append((num_rows, seed, forms))
        for i in range(num_rows):
            yield LabelledExample(
                id=f"{forms}-{i}",
                question=f"{forms} question {i}",
                responses=("thing",),
                label="Correct",
                group="shared" if i == 0 else f"{forms} {i}",
            )

    fake = ModuleType("data_prep.synthetic.text.generate")
    vars(fake)["generate_examples"] = generate_examples
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    result = run("synthetic", "--out", tmp_path, "--rows", 100, "--seed", 5, "--test", 0.2)
    assert sorted(asked) == [(20, 5, "test"), (80, 5, "train")]
    for split in SPLITS:
        origins = {e.id.split("-")[0] for e in read(tmp_path, split)}
        assert origins == {"test" if split == "test" else "train"}
    assert len(read(tmp_path, "test")) == 20
    assert sum(len(read(tmp_path, split)) for split in SPLITS) == 99, "one shares a group with test"
    assert "left out: 1 near duplicates of test" in result.stdout


@pytest.mark.parametrize("verb", ["evouna", "hieval", "generic", "synthetic"])
def test_help_gives_an_example(verb: str) -> None:
    result = run(verb, "--help")
    assert f"Example: custos prep {verb}" in result.stdout
