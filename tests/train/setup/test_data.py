from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from tests.train.made_up import example, examples, write_split
from train.setup.data import check_rows, load_splits
from train.setup.recipe import DataSection


def _section(folder: Path, **fields: Any) -> DataSection:
    given = {
        "train": [write_split(folder / "train.jsonl", examples(6))],
        "val": write_split(folder / "val.jsonl", examples(4, 100)),
    }
    return DataSection.model_validate(given | fields)


def test_splits_are_read_in_order(tmp_path: Path) -> None:
    more = write_split(tmp_path / "more.jsonl", examples(3, 50))
    section = _section(tmp_path)
    splits = load_splits(section.model_copy(update={"train": (*section.train, Path(more))}))
    assert splits.keys() == {"train", "val"}
    assert [row.id for row in splits["train"]] == ["0", "1", "2", "3", "4", "5", "50", "51", "52"]


def test_limits(tmp_path: Path) -> None:
    splits = load_splits(_section(tmp_path, limit=2, val_limit=3))
    assert (len(splits["train"]), len(splits["val"])) == (2, 3)


def test_rows_decided_by_rule_are_not_trained_on_but_tested(tmp_path: Path) -> None:
    rows = [example(0), example(1, responses=("  ",)), example(2)]
    path = write_split(tmp_path / "holes.jsonl", rows)
    splits = load_splits(_section(tmp_path, train=[path], val=path, test=path))
    assert [len(splits[name]) for name in ("train", "val", "test")] == [2, 2, 3]


def test_an_answerer_can_be_held_out(tmp_path: Path) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(6)]
    path = write_split(tmp_path / "both.jsonl", rows)
    section = _section(
        tmp_path, train=[path], val=path, cal=path, test=path, exclude_answerer="ant"
    )
    splits = load_splits(section)
    for name in ("train", "val", "cal"):
        assert {row.metadata["answerer"] for row in splits[name]} == {"bee"}
    assert {row.metadata["answerer"] for row in splits["test"]} == {"ant"}


def test_an_answerer_nobody_knows_is_refused(tmp_path: Path) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(6)]
    path = write_split(tmp_path / "both.jsonl", rows)
    section = _section(tmp_path, train=[path], val=path, exclude_answerer="ants")
    with pytest.raises(CustosError, match=r"data\.exclude_answerer: 'ants' is none of ant, bee"):
        load_splits(section)


@pytest.mark.parametrize(("split", "only"), [("cal", "ant"), ("test", "bee")])
def test_holding_out_may_leave_no_split_empty(tmp_path: Path, split: str, only: str) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(6)]
    both = write_split(tmp_path / "both.jsonl", rows)
    one = write_split(
        tmp_path / "one.jsonl", [row for row in rows if row.metadata["answerer"] == only]
    )
    section = _section(tmp_path, train=[both], val=both, exclude_answerer="ant", **{split: one})
    with pytest.raises(CustosError, match=rf"data\.{split}: no rows are left with .*=ant"):
        load_splits(section)


def test_a_missing_split_says_how_to_make_it(tmp_path: Path) -> None:
    section = _section(tmp_path, cal=tmp_path / "none.jsonl")
    with pytest.raises(CustosError, match=r"none\.jsonl: no such split; make it with 'custos prep"):
        load_splits(section)


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    path = write_split(tmp_path / "empty.jsonl", [example(0, responses=("",))])
    with pytest.raises(CustosError, match=r"data\.val: no rows to use"):
        load_splits(_section(tmp_path, val=path))


def test_a_bad_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "?", "response": "a"}', encoding="utf-8")
    with pytest.raises(CustosError, match=r"bad\.jsonl row 1: field 'label': Field required"):
        load_splits(_section(tmp_path, train=[str(path)]))


def test_rows_without_an_id_are_known_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    lines = [example(i, id="").model_dump_json(exclude={"id"}) for i in range(2)]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    splits = load_splits(_section(tmp_path, val=path))
    assert [row.id for row in splits["val"]] == [f"{path} row 1", f"{path} row 3"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "Partial"}, "field 'label': 'Partial' is not one of Correct, Wrong"),
        ({"references": ()}, "field 'references'"),
        ({"images": ("none.png",)}, "'none.png' is not a readable picture"),
    ],
)
def test_rows_that_a_judge_cannot_take(fields: dict[str, Any], message: str) -> None:
    check_rows(examples(3))
    with pytest.raises(CustosError, match=rf"^row '7': .*{message}"):
        check_rows([*examples(3), example(7, **fields)])
