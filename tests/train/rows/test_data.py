"""Splits that share questions, as a recipe meets them."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.splits.splits import SPLITS
from data_prep.tables.mapping import TableMapping
from judging.errors import CustosError, FieldError
from judging.files.questions import write_question_hashes
from judging.types import LabelledExample, Split
from tests.tiny import save_picture
from tests.train.made_up import example, examples, write_split
from train.rows.data import (
    Examples,
    ReplaySection,
    RunSplits,
    check_overlaps,
    read_splits,
    replay_sample,
    with_replay,
)
from train.rows.held_out import (
    RunTable,
    held_out_sizes,
    hold_out,
    hold_out_as_before,
    write_run_data,
)
from train.setup.recipe import DataSection


def _section(folder: Path, **fields: Any) -> DataSection:
    train = write_split(folder / "train.jsonl", examples(6))
    val = write_split(folder / "val.jsonl", examples(4, 100))
    return DataSection.model_validate({"train": train, "val": val, **fields})


def test_splits_are_read_in_order(tmp_path: Path) -> None:
    more = write_split(tmp_path / "more.jsonl", examples(3, 50))
    section = _section(tmp_path)
    splits = read_splits(section.model_copy(update={"train": (*section.train, Path(more))}))
    assert splits.cal is None and splits.test is None and not splits.watched
    assert [row.id for row in splits.train] == ["0", "1", "2", "3", "4", "5", "50", "51", "52"]


def test_rows_decided_by_rule_are_not_trained_on_but_tested(tmp_path: Path) -> None:
    rows = [example(0), example(1, responses=("  ",)), example(2)]
    path = write_split(tmp_path / "holes.jsonl", rows)
    splits = read_splits(_section(tmp_path, train=path, val=path, test=path))
    assert splits.test is not None
    assert [len(rows) for rows in (splits.train, splits.val, splits.test)] == [2, 2, 3]


def test_votes_become_a_soft_label_of_training_rows_alone(tmp_path: Path) -> None:
    people = {"anna": "Wrong", "ben": "Correct", "carla": "Wrong"}
    rows = [
        example(1, weight=2.0, annotator_labels=people),
        example(2, annotator_labels=dict.fromkeys(people, "Wrong")),
        example(3, second_label="Wrong"),
        example(4, annotator_labels=people, critique="It is brown."),
        example(5, annotator_labels=people, label="Correct"),  # corrected, against most of them
    ]
    path = write_split(tmp_path / "people.jsonl", rows)
    assert len(read_splits(_section(tmp_path, train=[path])).train) == 5
    splits = read_splits(_section(tmp_path, train=[path], val=path, votes="shares"))
    taught: dict[str, dict[str, float]] = {}
    for row in splits.train:
        assert row.label not in taught.setdefault(row.id, {})
        taught[row.id][row.label] = row.weight
    assert taught == {
        "1": {"Wrong": pytest.approx(4 / 3), "Correct": pytest.approx(2 / 3)},
        "2": {"Wrong": 1.0},
        "3": {"Correct": 0.5, "Wrong": 0.5},
        "4": {"Wrong": 1.0},
        "5": {"Correct": 1.0},
    }
    assert [row.label for row in splits.val] == [row.label for row in rows]


def test_a_table_with_a_row_for_each_label_has_a_row_for_each_item(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    labels = ("anna,Correct", "ben,Wrong", "carla,Wrong")
    lines = [f"{asked},green,brown,{label}" for asked in ("Which?", "Who?") for label in labels]
    text = "\n".join(("question,references,response,worker,label", *lines))
    path.write_text(text, encoding="utf-8")
    mapping = {"columns": {"annotators": "worker"}}
    files = dict.fromkeys(("train", "val", "test"), path)
    splits = read_splits(_section(tmp_path, **files, mapping=mapping, votes="shares"))
    assert splits.test is not None
    assert [row.label for row in splits.test] == ["Wrong"] * 2
    shares = [(row.label, round(row.weight, 3)) for row in splits.train]
    assert shares == [("Correct", 0.333), ("Wrong", 0.667)] * 2


def test_an_answerer_can_be_held_out(tmp_path: Path) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(6)]
    path = write_split(tmp_path / "both.jsonl", rows)
    files = dict.fromkeys(("train", "val", "cal", "test"), path)
    section = _section(tmp_path, **files, exclude_answerer="ant")
    splits = read_splits(section)
    for split in (splits.train, splits.val, splits.cal):
        assert {row.metadata["answerer"] for row in split or ()} == {"bee"}
    assert {row.metadata["answerer"] for row in splits.test or ()} == {"ant"}
    with pytest.raises(CustosError, match=r"answerer': 'ants' is none of ant, bee"):
        read_splits(section.model_copy(update={"exclude_answerer": "ants"}))


@pytest.mark.parametrize("name", ["val", "cal", "test"])
def test_an_empty_split_is_refused(tmp_path: Path, name: str) -> None:
    decided = [example(0, responses=("",))] if name == "val" else []
    empty = write_split(tmp_path / "empty.jsonl", decided)
    with pytest.raises(FieldError) as refused:
        read_splits(_section(tmp_path, **{name: empty}))
    assert refused.value.field == f"data.{name}"


def test_rows_without_an_id_are_known_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    lines = [example(i, id="").model_dump_json(exclude={"id"}) for i in range(2)]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    splits = read_splits(_section(tmp_path, val=path))
    assert [row.id for row in splits.val] == [f"{path} row 1", f"{path} row 3"]


@pytest.mark.parametrize("split", ["train", "val", "cal", "test"])
def test_a_broken_picture_is_named_with_its_row(tmp_path: Path, split: str) -> None:
    whole = Path(save_picture(tmp_path / "whole.jpg", 300, 200))
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(whole.read_bytes()[:-500])
    images = [whole, whole, cut, tmp_path / "none.jpg"]
    rows = [example(i, images=(str(image),)) for i, image in enumerate(images)]
    path = write_split(tmp_path / "pictured.jsonl", rows)
    with pytest.raises(
        CustosError, match=r"pictured\.jsonl row 3: field 'images': '.*cut\.jpg' is n"
    ):
        read_splits(_section(tmp_path, **{split: path}))


EARLIER = examples(90)  # every third Correct


@given(st.integers(0, 90), st.integers(0, 9))
def test_labels_keep_their_shares(num_task2: int, seed: int) -> None:
    sampled = [EARLIER[i] for i in replay_sample(EARLIER, num_task2, 1.0, "task2", seed)]
    assert len(sampled) == num_task2
    assert len({row.id for row in sampled}) == num_task2, "drawn without replacement"
    counts = Counter(row.label for row in sampled)
    assert abs(counts["Correct"] - num_task2 / 3) < 1
    assert abs(counts["Wrong"] - 2 * num_task2 / 3) < 1


def test_rho_of_either_task() -> None:
    assert len(replay_sample(EARLIER, 40, 0.5, "task2", 0)) == 20
    assert len(replay_sample(EARLIER, 40, 0.5, "task1", 0)) == 45
    assert replay_sample(EARLIER, 40, 0.0, "task2", 0) == []
    with pytest.raises(CustosError, match="'replay.rho': 2.0 of task2 asks for 180 .* are 90"):
        replay_sample(EARLIER, 90, 2.0, "task2", 0)


def test_splits_with_replay(tmp_path: Path) -> None:
    earlier = Path(write_split(tmp_path / "train.jsonl", EARLIER))
    val = Path(write_split(tmp_path / "val.jsonl", examples(9, 200)))
    new = examples(20, 500)
    new_splits = RunSplits(Examples.write(new), Examples.write(new[:3]))
    splits = with_replay(new_splits, ReplaySection(train=(earlier,), val=val, val_limit=6), 0)
    assert list(splits.train[:20]) == new
    assert len(splits.train) == 40
    assert splits.replayed == 20
    assert splits.map(lambda rows: rows).replayed == 20
    assert [row.id for row in splits.watched["stage1"]] == [str(i) for i in range(200, 206)]
    assert list(splits.val) == new[:3]
    assert list(with_replay(new_splits, ReplaySection(), 0).train) == new


def test_a_held_out_answerer_is_not_replayed(tmp_path: Path) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(90)]
    earlier = Path(write_split(tmp_path / "earlier.jsonl", rows))
    new = RunSplits(Examples.write(examples(20, 500)), Examples.write([]))
    splits = with_replay(new, ReplaySection(train=(earlier,), val=earlier), 0, "ant")
    for replayed in (splits.train[20:], splits.watched["stage1"]):
        assert {row.metadata["answerer"] for row in replayed} == {"bee"}


def asking(*names: str) -> list[LabelledExample]:
    return [
        example(number, question=f"How long is the {name}?", references=(names[0],))
        for number, name in enumerate(names)
    ]


def overlapping(folder: Path, **fields: Any) -> DataSection:
    rows = {
        "train": asking("Elbe", "Danube", "Mississippi"),
        "val": asking("Thames"),
        "cal": asking("Congo", "Ganges"),
        "test": asking("Loire", "Mississippi", "Ganges"),
    }
    files = {split: write_split(folder / f"{split}.jsonl", part) for split, part in rows.items()}
    return DataSection.model_validate(files | fields)


def test_it_is_refused_with_counts_and_the_first_rows(tmp_path: Path) -> None:
    data = overlapping(tmp_path)
    with pytest.raises(FieldError) as caught:
        check_overlaps(read_splits(data), data)
    assert caught.value.field == "data.test"
    message = caught.value.message
    assert "of 3 test rows, 1 shares a question with train; of 3 test rows, 1 shares" in message
    assert f"first: {tmp_path}/test.jsonl row 2 and {tmp_path}/train.jsonl row 3)" in message
    assert "data.allow_overlap=true" in message


@pytest.mark.parametrize("allowed", [True, [["train", "test"], ["test", "cal"]]])
def test_it_may_be_allowed(tmp_path: Path, allowed: Any) -> None:
    data = overlapping(tmp_path, allow_overlap=allowed)
    overlaps = [(o.split, o.other, o.total) for o in check_overlaps(read_splits(data), data)]
    assert overlaps == [("test", "train", 1), ("test", "cal", 1)]


ALL: tuple[Split, ...] = ("val", "cal", "test")


@pytest.mark.parametrize(
    ("num_rows", "sizes"),
    [(10, (2, 2, 2)), (20, (4, 4, 4)), (500, (50, 50, 100)), (50_000, (500, 1000, 2000))],
)
def test_sizes_suit_the_number_of_rows(num_rows: int, sizes: tuple[int, int, int]) -> None:
    held_out = held_out_sizes(num_rows, ALL)
    assert (held_out.val, held_out.cal, held_out.test) == sizes


def test_only_what_is_wanted_is_held_out() -> None:
    rows = [example(i, question=f"Which river {i // 2}?") for i in range(100)]
    splits = hold_out(rows, ["val"])
    assert [len(splits[split]) for split in SPLITS] == [90, 10, 0, 0]
    assert splits == hold_out(rows[::-1], ["val"]), "the order of the rows does not matter"


def test_rows_join_the_split_in_which_an_earlier_run_had_their_question(tmp_path: Path) -> None:
    def ask(question: str, answer: str = "green", label: str = "Correct") -> LabelledExample:
        return example(0, id="", question=question, responses=(answer,), label=label)

    names = {
        "train": "Who dug the old canal?",
        "val": "When did the large bridge open?",
        "cal": "Where does the brook end?",
        "test": "How deep is the northern lake?",
    }
    (tmp_path / "data").mkdir()
    for split, question in names.items():
        write_split(tmp_path / "data" / f"{split}.jsonl", [ask(question), ask(question, "brown")])
    write_question_hashes(tmp_path, [ask("What did the miller sell?")])
    corrected = [ask(question, label="Wrong") for question in names.values()]
    other = [ask("How deep is the northern lake", "blue"), ask("What did the miller sell?")]
    splits, num_left_out = hold_out_as_before([*corrected, *other, ask("Why?")], ALL, tmp_path)
    found = {
        split: sorted((row.question, row.responses[0], row.label) for row in rows)
        for split, rows in splits.items()
    }
    assert num_left_out == 0
    assert found == {
        "train": [
            ("What did the miller sell?", "green", "Correct"),
            (names["train"], "green", "Wrong"),
            ("Why?", "green", "Correct"),
        ],
        **{
            split: [(names[split], "brown", "Correct"), (names[split], "green", "Wrong")]
            for split in ("val", "cal")
        },
        "test": [
            ("How deep is the northern lake", "blue", "Correct"),
            (names["test"], "brown", "Correct"),
            (names["test"], "green", "Wrong"),
        ],
    }
    both = ask(names["train"]).model_copy(update={"group": "one"})
    near = ask(names["test"], "red").model_copy(update={"group": "one"})
    _, num_left_out = hold_out_as_before([*corrected, both, near, ask("Why?")], ALL, tmp_path)
    assert num_left_out == 4, "nothing on these two questions can be learned or measured"
    fresh = [ask(f"Which of the {i} gates?", "red") for i in range(200)]
    splits, _ = hold_out_as_before([*corrected, *fresh], ALL, tmp_path)
    sizes = {split: len(rows) for split, rows in splits.items()}
    assert sizes == {"train": 121, "val": 22, "cal": 22, "test": 42}


def test_no_row_is_held_out_whose_question_is_near_to_a_learned_one(tmp_path: Path) -> None:
    """Of the first run the second knows where it lies; of others it knows hashes alone."""
    letters = random.Random(0)
    questions = [
        " ".join("".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(6))
        for _ in range(180)
    ]
    of_first, hashed, fresh = questions[:60], questions[60:120], questions[120:]

    def ask(question: str) -> LabelledExample:
        return example(0, id="", question=question, responses=("green",))

    first, second = tmp_path / "first", tmp_path / "second"
    for run, learned in ((first, of_first), (second, ["Who owned the old quarry?"])):
        (run / "data").mkdir(parents=True)
        write_split(run / "data" / "train.jsonl", [*map(ask, learned)])
    manifest = {"source": {"from": str(first)}}
    (second / "data" / "manifest.json").write_text(json.dumps(manifest))
    write_question_hashes(second, map(ask, hashed))
    near = [f"{question} now" for question in (*of_first, *hashed)]
    splits, _ = hold_out_as_before([*map(ask, (*near, *hashed, *fresh))], ALL, second)
    held_out = {row.question for split in ALL for row in splits[split]}
    assert held_out and held_out <= set(fresh)


def lines_on(table: RunTable, held_out: list[Split], run: Path, earlier: Any = None) -> list[str]:
    """Write the rows of a run; return what is said of them."""
    settings: dict[str, Any] = {"allow_dropped": False, "seed": 0, "command": "custos train"}
    return write_run_data({"train": [table]}, held_out, run, earlier=earlier, **settings).doubles


def test_rows_of_two_tables_of_one_name_get_ids_of_their_own(tmp_path: Path) -> None:
    tables = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        rows = [example(i, id="", question=f"Is {name} {i}?") for i in range(3)]
        file = write_split(tmp_path / name / "rows.jsonl", rows)
        tables.append(RunTable(file, TableMapping()))
    settings: dict[str, Any] = {"allow_dropped": False, "seed": 0, "command": "custos train"}
    write_run_data({"train": tables}, [], tmp_path / "run", **settings)
    written = (tmp_path / "run" / "data" / "train.jsonl").read_text(encoding="utf-8")
    assert len({json.loads(line)["id"] for line in written.splitlines()}) == 6


def test_a_run_that_does_not_say_what_it_learned_is_named(tmp_path: Path) -> None:
    rows = [example(i, question=f"Which of the {i} gates?") for i in range(60)]
    table = RunTable(write_split(tmp_path / "rows.jsonl", rows), TableMapping())
    unknown, known = tmp_path / "unknown", tmp_path / "known"
    for run in (unknown, known):
        run.mkdir()
    write_question_hashes(known, [])
    [line] = lines_on(table, [*ALL], tmp_path / "a", unknown)
    assert str(unknown) in line
    assert lines_on(table, [*ALL], tmp_path / "b", known) == []


def test_equal_rows_with_different_labels_are_named_where_they_are_read(tmp_path: Path) -> None:
    rows = [f"Question {i // 2}?,x,y,{('Correct', 'Wrong')[i % 2]}\n" for i in range(24)]
    file = tmp_path / "rows.csv"
    file.write_text("".join(["question,references,response,label\n", *rows]), encoding="utf-8")
    table = RunTable(str(file), TableMapping(reference_mode="any"))
    repeated, contradictory = lines_on(table, ["val"], tmp_path / "run")
    assert repeated.startswith("12 ") and contradictory.startswith("12 ")
    assert lines_on(table, ["val"], tmp_path / "run") == [], "it holds the rows already"
