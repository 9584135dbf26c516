from __future__ import annotations

from pathlib import Path

import pytest

from data_prep.splits.splits import SPLITS
from data_prep.tables.mapping import TableMapping
from judging.errors import CustosError
from judging.types import Split
from tests.train.made_up import example
from train.rows.held_out import held_out_sizes, hold_out, write_run_data

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
    assert {split: len(splits[split]) for split in SPLITS} == {
        "train": 90,
        "val": 10,
        "cal": 0,
        "test": 0,
    }
    assert splits == hold_out(rows[::-1], ["val"]), "the order of the rows does not matter"


def test_too_few_questions_are_counted() -> None:
    rows = [example(i, question="Which river?") for i in range(40)]
    with pytest.raises(CustosError, match="^1 different questions are too few to divide into"):
        hold_out(rows, ALL)


def test_equal_rows_with_different_labels_are_named_where_they_are_read(tmp_path: Path) -> None:
    rows = [f"Question {i // 2}?,x,y,{('Correct', 'Wrong')[i % 2]}\n" for i in range(24)]
    table = tmp_path / "rows.csv"
    table.write_text("".join(["question,references,response,label\n", *rows]), encoding="utf-8")

    def write() -> list[str]:
        return write_run_data(
            {"train": str(table)},
            ["val"],
            tmp_path / "run",
            mapping=TableMapping(reference_mode="any"),
            allow_dropped=False,
            seed=0,
            command="custos train",
        ).doubles

    repeated, contradictory = write()
    assert repeated.startswith("12 ") and contradictory.startswith("12 ")
    assert write() == [], "the folder holds the rows already"
