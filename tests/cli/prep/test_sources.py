"""Published data sets from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from data_prep.splits.filters import excluded_hash
from judging.errors import CustosError
from tests.cli.prep.made_up import SPLITS, evouna_rows, read, read_splits, run, write_rows
from tests.published_files import needs_published, published


def test_evouna(tmp_path: Path) -> None:
    rows = evouna_rows(100)
    rows[50]["judge_fid"] = "yes"
    source = tmp_path / "nq.json"
    source.write_text(json.dumps(rows), encoding="utf-8")
    result = run("evouna", "--source", source, "--out", tmp_path / "out", "--allow-dropped")
    assert "nq.json row 51: field 'judge_fid'" in result.stderr
    assert re.search(r"test\s.*60\s.*75\.0%\)\s.*25\.0%\)", result.stdout)
    assert {split: len(read(tmp_path / "out", split)) for split in SPLITS} == {
        "train": 375,
        "val": 25,
        "cal": 35,
        "test": 60,
    }
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["source"]["name"] == "nq.json"
    assert manifest["left_out"]["bad_rows"] == 1
    with pytest.raises(CustosError, match="1 rows cannot be used .*row 51: field 'judge_fid'"):
        run("evouna", "--source", source, "--out", tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


@needs_published("evouna/NQ.json")
def test_evouna_as_published(tmp_path: Path) -> None:
    run("evouna", "--source", published("evouna/NQ.json"), "--out", tmp_path)
    splits = read_splits(tmp_path)
    assert sum(map(len, splits.values())) == 15_098
    assert len(splits["test"]) >= 1_500
    for members in splits.values():
        share = sum(e.label == "Correct" for e in members) / len(members)
        assert share == pytest.approx(0.732, abs=0.005)


def test_excluded_questions_are_left_out(tmp_path: Path) -> None:
    rows = evouna_rows(40)
    source, excluded = tmp_path / "nq.json", tmp_path / "out.sha256"
    source.write_text(json.dumps(rows), encoding="utf-8")
    excluded.write_text(f"{excluded_hash('What is item 7?')}\n", encoding="utf-8")
    result = run("evouna", "--source", source, "--exclude", excluded, "--out", tmp_path / "out")
    assert "left out: 5 filtered" in result.stdout
    kept = [e.question for split in SPLITS for e in read(tmp_path / "out", split)]
    assert len(kept) == 195
    assert "what is item 7" not in kept
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["source"]["exclude"]["name"] == "out.sha256"


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
        (("--test", "inf"), "--test 'inf': expected a finite number"),
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


def test_a_folder_of_a_hub_data_set(tmp_path: Path) -> None:
    rows = [
        {"question": f"Item {i}?", "answer": "a", "response": "a", "label": "Wrong"}
        for i in range(12)
    ]
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    write_rows(folder / "data" / "train-0-of-2.jsonl", rows[:6])
    write_rows(folder / "data" / "train-1-of-2.jsonl", rows[6:])
    write_rows(folder / "data" / "test-0-of-1.jsonl", rows[:1])
    sizes = ("--val", 1, "--cal", 1, "--test", 2)
    run("hieval", "--source", folder, "--out", tmp_path / "out", *sizes)
    ids = {row.id for split in SPLITS for row in read(tmp_path / "out", split)}
    assert len(ids) == 12
    assert "train-1-of-2-6" in ids
    source = json.loads((tmp_path / "out" / "manifest.json").read_text())["source"]
    assert [file["name"] for file in source["files"]] == [
        "train-0-of-2.jsonl",
        "train-1-of-2.jsonl",
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(CustosError, match="file in this folder"):
        run("hieval", "--source", tmp_path / "empty", "--out", tmp_path / "out", *sizes)


GOOD = "<critique>A is right.</critique><label>A</label><confidence>.83</confidence>"


def judged_pair(number: int, heading: str = "[[Question]]", reference: str = "") -> dict[str, Any]:
    asked = f"<image>{heading}\nWhat is item {number}?{reference}[[Response A]]\nx[[Response B]]\ny"
    turns = (("system", "Judge."), ("user", asked), ("assistant", GOOD))
    messages = [{"role": role, "content": content} for role, content in turns]
    return {"messages": messages, "images": [f"images/{number}.png"]}


def test_truthful(tmp_path: Path) -> None:
    source, out = tmp_path / "judge.json", tmp_path / "out"
    source.write_text(json.dumps([*map(judged_pair, range(40)), judged_pair(40, "Ask:")]))
    result = run("truthful", "--source", source, "--out", out, "--test", 10, "--allow-dropped")
    assert "row 41: field 'messages': heading '[[Question]]' occurs 0 times" in result.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["left_out"] == {"bad_rows": 1, "filtered": 0}
    assert manifest["outputs"]["test.jsonl"]["rows"] == 10
    assert sum(output["rows"] for output in manifest["outputs"].values()) == 40
    first = read(out, "test")[0]
    assert (first.label, first.critique) == ("A", "A is right.")
    with pytest.raises(CustosError, match="row 1: field 'messages': heading 'Ask:' occurs 0"):
        run("truthful", "--source", source, "--out", tmp_path / "refused", "--question", "Ask:")


def test_the_reference_is_shown_or_not_as_asked(tmp_path: Path) -> None:
    """Appendix F.2 shows none; a judge may be trained for either, or for both."""
    source = tmp_path / "judge.json"
    rows = [judged_pair(number, reference="[[Reference Answer]]\nz") for number in range(20)]
    source.write_text(json.dumps(rows))
    for shown, with_one, without in (("shown", 20, 0), ("hidden", 0, 20), ("both", 20, 20)):
        run("truthful", "--source", source, "--out", tmp_path / shown, "--reference-answer", shown)
        examples = [row for split in SPLITS for row in read(tmp_path / shown, split)]
        assert sum(bool(example.references) for example in examples) == with_one
        assert sum(not example.references for example in examples) == without
    train, test = ({e.question for e in read(tmp_path / "both", s)} for s in ("train", "test"))
    assert not train & test


def test_truthfulqa(tmp_path: Path) -> None:
    rows = [
        {
            "question": f"what is item {i}",
            "response": f"a thing {j}",
            "label": "True" if j else "False",
            "correct_answers": ["thing"],
        }
        for i in range(50)
        for j in range(2)
    ]
    rows[3]["label"] = "Maybe"
    source = write_rows(tmp_path / "t.jsonl", rows)
    with pytest.raises(CustosError, match="1 rows cannot be used .*row 4: field 'label'"):
        run("truthfulqa", "--source", source, "--out", tmp_path / "refused")
    result = run("truthfulqa", "--source", source, "--out", tmp_path / "out", "--allow-dropped")
    assert "left out: 1 bad rows" in result.stdout
    assert sum(map(len, read_splits(tmp_path / "out").values())) == 99
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == {
        "bad_rows": 1, "without_an_answer": 0, "judged_both_ways": 0, "repeated": 0,
    }  # fmt: skip
