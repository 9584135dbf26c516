"""Tables of the user and published data sets: read, shown, divided, mixed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from data_prep.splits.filters import excluded_hash
from data_prep.splits.overlap import find_overlaps
from judging.errors import CustosError
from tests.cli.prep.made_up import SPLITS, evouna_rows, own_rows, read, run, write_rows


def test_generic_with_both_filters(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", own_rows(40))
    verdicts = tmp_path / "verdicts.json"
    # Each of two models finds everything Correct: the ten Wrong examples are contested, and two of
    # these (0 and 20) have one-word responses.
    verdicts.write_text(json.dumps({str(i): ["Correct", "Correct"] for i in range(40)}))
    run(
        *("table", source, "--out", tmp_path / "out", "--min-words", 3),
        *("--verdicts", verdicts, "--disagreeing", 2, "--models", 2),
    )
    kept = {e.id for split in SPLITS for e in read(tmp_path / "out", split)}
    assert kept == {"4", "8", "12", "16", "24", "28", "32", "36"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == {"bad_rows": 0, "filtered": 32}


def test_rows_without_ids_are_contested_by_their_numbers(tmp_path: Path) -> None:
    rows = own_rows(4)  # the first is Wrong
    source = write_rows(tmp_path / "own.jsonl", [{**row, "id": ""} for row in rows])
    given = [{"id": str(n), "status": "scored", "label": "Correct"} for n in (1, 2, 3, 4)]
    graded = write_rows(tmp_path / "graded.jsonl", given)
    run("construct", "verdicts", "--in", source, "--graded", graded, "--out", tmp_path / "judges")
    run(
        "table", source, "--out", tmp_path / "out", "--test", "all", "--disagreeing", 1,
        "--models", 1, "--verdicts", tmp_path / "judges" / "verdicts.json",
    )  # fmt: skip
    assert [row.id for row in read(tmp_path / "out", "test")] == ["own-1"]


SHEET = """\
question,gold,answer,grade,model
Who wrote Emma?,Jane Austen,It is by Jane Austen.,right,m1
Who wrote Emma?,Jane Austen,Bronte,wrong,m2
Who wrote Emma?,Jane Austen,Bronte,right,m2
What are the primes below 4?,2;3,\x1b[31m2,partly,m1
"""
MAPPED = (
    *("--map", "references=gold", "--map", "response=answer", "--map", "label=grade"),
    *("--map", "metadata.answerer=model", "--labels", "right=Correct,partly=Partial"),
)


def test_a_sheet_is_shown_as_the_judge_sees_it(tmp_path: Path) -> None:
    source = tmp_path / "labels.csv"
    source.write_text(SHEET)
    result = run("table", source, *MAPPED, "--out", tmp_path / "out", "--test", "all")
    shown = result.stdout
    assert "row 1: hieval-qs/plain/all, labelled Correct\n  Question: Who wrote Emma?" in shown
    assert "Ground truth: 2; 3" in shown
    assert "labels of hieval-qs/plain/all: Correct, Partial, Wrong" in shown
    assert "responses: 6 to 21 characters, median 6" in shown
    assert "1 rows repeat an earlier one\n1 equal rows have different labels (" in shown
    assert "\x1b" not in shown
    assert [len(read(tmp_path / "out", split)) for split in SPLITS] == [0, 0, 0, 4]
    [row] = [row for row in read(tmp_path / "out", "test") if row.label == "Partial"]
    assert (row.id, row.source, row.metadata) == ("labels-4", "labels", {"answerer": "m1"})
    source_of = json.loads((tmp_path / "out" / "manifest.json").read_text())["source"]
    assert source_of["name"] == "labels.csv"
    assert len(source_of["sha256"]) == 64
    assert source_of["mapping"]["columns"]["references"] == "gold"


def test_answers_to_a_question_stay_together(tmp_path: Path) -> None:
    rows = [row | {"question": f"Item {i // 4}?"} for i, row in enumerate(own_rows(80))]
    source = write_rows(tmp_path / "own.jsonl", rows)
    result = run("table", source, "--out", tmp_path / "out", "--val", 8, "--cal", 8, "--test", "8")
    assert "row 10: " in result.stdout
    assert "row 11: " not in result.stdout
    groups = [{row.question for row in read(tmp_path / "out", split)} for split in SPLITS]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 20


def test_rows_that_cannot_be_used_stop_it_unless_allowed(tmp_path: Path) -> None:
    rows = [*own_rows(20), *({"question": "no label"} for _ in range(25))]
    source = write_rows(tmp_path / "own.jsonl", rows)
    with pytest.raises(CustosError, match="25 of 45 rows cannot be used.*the first is row 21.*--a"):
        run("table", source, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    result = run("table", source, "--out", tmp_path / "out", "--allow-dropped")
    lines = result.stderr.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "skipped: 15 more bad rows"
    assert "left out: 25 bad rows" in result.stdout


def test_what_is_refused(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "train.jsonl", own_rows(8))
    with pytest.raises(CustosError, match=r"files of yours that would be replaced \(train.jsonl"):
        run("table", source, "--out", tmp_path)
    with pytest.raises(CustosError, match="--test 'most': expected a share, a number, or all"):
        run("table", source, "--out", tmp_path / "out", "--test", "most")
    with pytest.raises(CustosError, match="no rows"):
        run("table", write_rows(tmp_path / "empty.jsonl", []), "--out", tmp_path / "out")


def test_training_pairs_in_both_orders(tmp_path: Path) -> None:
    pairs = [
        {
            **{"task": "truthful-pair", "question": f"Item {i}?", "references": [f"thing {i}"]},
            "responses": [f"It is thing {i}.", f"It is person {i}."],
            **{"label": "A", "second_label": "None"},
            "critique": f"Response A names thing {i}. Response B does not.",
        }
        for i in range(40)
    ]
    source = write_rows(tmp_path / "pairs.jsonl", pairs)
    sizes = ("--val", 4, "--cal", 4, "--test", "8")
    run("table", source, "--out", tmp_path / "out", *sizes, "--both-orders")
    by_split = {split: read(tmp_path / "out", split) for split in SPLITS}
    assert [len(by_split[split]) for split in SPLITS] == [48, 4, 4, 8]
    train = {row.id: row for row in by_split["train"]}
    for row_id, swapped in train.items():
        if row_id.endswith("-swapped"):
            given = train[row_id.removesuffix("-swapped")]
            assert swapped.responses == given.responses[::-1]
            assert (given.label, given.second_label) == ("A", "None")
            assert (swapped.label, swapped.second_label) == ("B", "None")
            number = given.question.removeprefix("Item ").removesuffix("?")
            expected = f"Response B names thing {number}. Response A does not."
            assert swapped.critique == expected
    assert sum(row_id.endswith("-swapped") for row_id in train) == 24
    assert not any(row.id.endswith("-swapped") for row in by_split["test"])


def test_single_responses_have_no_other_order(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", own_rows(40))
    with pytest.raises(CustosError, match="row '.*field 'task': 'hieval-qs' judges one response"):
        run("table", source, "--out", tmp_path / "out", "--both-orders")


def prepared(folder: Path, topic: str, number: int, *options: str) -> Path:
    rows = [
        {
            "question": f"Tell me the {topic} of item {i}, please?",
            "references": ["thing"],
            "response": f"thing {i}",
            "label": "Correct" if i % 3 else "Wrong",
        }
        for i in range(number)
    ]
    source = write_rows(folder.with_suffix(".jsonl"), rows)
    run("table", source, "--out", folder, "--show", 0, *options)
    return folder


def test_so_many_rows_of_each(tmp_path: Path) -> None:
    sizes, colours = (prepared(tmp_path / name, name, 200) for name in ("size", "colour"))
    options = ("mix", "--source", f"{sizes}=76", "--source", colours, "--out")
    result = run(*options, tmp_path / "out")
    assert f"{sizes}: 76 train, 5 val, 7 cal, 12 test" in result.stdout.replace("\n", " ")
    splits = {split: read(tmp_path / "out", split) for split in SPLITS}
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 76 + 152, "val": 15, "cal": 21, "test": 36,
    }  # fmt: skip
    assert find_overlaps(splits) == []
    source = json.loads((tmp_path / "out" / "manifest.json").read_text())["source"]
    assert [part["rows"]["train"] for part in source["sources"]] == [76, 152]
    run(*options, tmp_path / "again")
    for split in SPLITS:
        assert read(tmp_path / "again", split) == splits[split]


def test_a_data_set_that_is_only_to_measure_with_is_mixed_whole(tmp_path: Path) -> None:
    sizes = prepared(tmp_path / "size", "size", 60)
    colours = prepared(tmp_path / "colour", "colour", 30, "--test", "all")
    result = run("mix", "--source", sizes, "--source", colours, "--out", tmp_path / "out")
    assert f"{colours}: 0 train, 0 val, 0 cal, 30 test" in result.stdout.replace("\n", " ")
    with pytest.raises(CustosError, match="there are 0 training rows"):
        run("mix", "--source", f"{colours}=1", "--out", tmp_path / "other")


def test_a_question_stays_in_the_strictest_split(tmp_path: Path) -> None:
    first = prepared(tmp_path / "size", "size", 150)
    second = tmp_path / "second"
    second.mkdir()
    rows = [json.loads(row.model_dump_json()) for row in read(first, "test")]
    write_rows(second / "train.jsonl", rows)
    result = run("mix", "--source", first, "--source", second, "--out", tmp_path / "out")
    assert f"left out: {len(rows)} in a stricter split" in result.stdout
    assert find_overlaps({split: read(tmp_path / "out", split) for split in SPLITS}) == []


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
        (("--field", "qestion=q"), "'qestion' is not one of our fields"),
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
