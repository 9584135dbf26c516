from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from judging.types import LabelledExample
from tests.tiny import save_picture
from tests.train.made_up import example, examples, write_split
from train.rows.data import RunSplits, check_splits, read_splits
from train.rows.examples import Examples
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
    splits = read_splits(section.model_copy(update={"train": (*section.train, Path(more))}))
    assert splits.cal is None and splits.test is None and not splits.watched
    assert [row.id for row in splits.train] == ["0", "1", "2", "3", "4", "5", "50", "51", "52"]


def test_limits(tmp_path: Path) -> None:
    splits = read_splits(_section(tmp_path, limit=2, val_limit=3))
    assert (len(splits.train), len(splits.val)) == (2, 3)


def test_rows_decided_by_rule_are_not_trained_on_but_tested(tmp_path: Path) -> None:
    rows = [example(0), example(1, responses=("  ",)), example(2)]
    path = write_split(tmp_path / "holes.jsonl", rows)
    splits = read_splits(_section(tmp_path, train=[path], val=path, test=path))
    assert splits.test is not None
    assert [len(rows) for rows in (splits.train, splits.val, splits.test)] == [2, 2, 3]


def test_an_answerer_can_be_held_out(tmp_path: Path) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(6)]
    path = write_split(tmp_path / "both.jsonl", rows)
    section = _section(
        tmp_path, train=[path], val=path, cal=path, test=path, exclude_answerer="ant"
    )
    splits = read_splits(section)
    for split in (splits.train, splits.val, splits.cal):
        assert {row.metadata["answerer"] for row in split or ()} == {"bee"}
    assert {row.metadata["answerer"] for row in splits.test or ()} == {"ant"}


def test_an_answerer_that_a_table_numbers_can_be_held_out(tmp_path: Path) -> None:
    rows = [example(i, metadata={"answerer": i % 2}) for i in range(6)]
    path = write_split(tmp_path / "both.jsonl", rows)
    splits = read_splits(_section(tmp_path, train=[path], val=path, exclude_answerer="1"))
    assert [row.metadata["answerer"] for row in splits.train] == [0, 0, 0]


def test_an_answerer_nobody_knows_is_refused(tmp_path: Path) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(6)]
    path = write_split(tmp_path / "both.jsonl", rows)
    section = _section(tmp_path, train=[path], val=path, exclude_answerer="ants")
    with pytest.raises(
        CustosError, match=r"field 'data\.exclude_answerer': 'ants' is none of ant, bee"
    ):
        read_splits(section)


@pytest.mark.parametrize(("split", "only"), [("cal", "ant"), ("test", "bee")])
def test_holding_out_may_leave_no_split_empty(tmp_path: Path, split: str, only: str) -> None:
    rows = [example(i, metadata={"answerer": "ant" if i % 2 else "bee"}) for i in range(6)]
    both = write_split(tmp_path / "both.jsonl", rows)
    single = write_split(
        tmp_path / "one.jsonl", [row for row in rows if row.metadata["answerer"] == only]
    )
    section = _section(tmp_path, train=[both], val=both, exclude_answerer="ant", **{split: single})
    with pytest.raises(CustosError, match=rf"field 'data\.{split}': no rows are left with .*=ant"):
        read_splits(section)


def test_an_error_of_reading_is_not_the_disks_that_rows_are_kept_on(tmp_path: Path) -> None:
    def unreadable() -> Iterator[LabelledExample]:
        yield example(0)
        raise PermissionError(errno.EACCES, "Permission denied", "train.jsonl")

    with pytest.raises(PermissionError, match=r"train\.jsonl"):
        Examples.write(unreadable())


def test_a_disk_that_takes_no_rows_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(CustosError, match=r"gone: the rows cannot be written .* set TMPDIR"):
        Examples.write([example(0)])


def test_a_missing_split_says_how_to_make_it(tmp_path: Path) -> None:
    section = _section(tmp_path, cal=tmp_path / "none.jsonl")
    with pytest.raises(CustosError, match=r"none\.jsonl: no such split; make it with 'custos prep"):
        read_splits(section)


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    path = write_split(tmp_path / "empty.jsonl", [example(0, responses=("",))])
    with pytest.raises(CustosError, match=r"field 'data\.val': no rows to use"):
        read_splits(_section(tmp_path, val=path))


@pytest.mark.parametrize("name", ["cal", "test"])
def test_a_split_that_ends_a_run_in_vain_is_refused(tmp_path: Path, name: str) -> None:
    empty = write_split(tmp_path / "empty.jsonl", [])
    with pytest.raises(CustosError, match=rf"field 'data\.{name}': the file has no rows"):
        read_splits(_section(tmp_path, **{name: empty}))


def test_a_bad_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "?", "response": "a"}', encoding="utf-8")
    with pytest.raises(CustosError, match=r"bad\.jsonl: .*'label': Field required .* row 1"):
        read_splits(_section(tmp_path, train=[str(path)]))


def test_rows_without_an_id_are_known_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    lines = [example(i, id="").model_dump_json(exclude={"id"}) for i in range(2)]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    splits = read_splits(_section(tmp_path, val=path))
    assert [row.id for row in splits.val] == [f"{path} row 1", f"{path} row 3"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "Partial"}, "field 'label': 'Partial' is not one of Correct, Wrong"),
        ({"references": ()}, "field 'references'"),
    ],
)
def test_rows_that_a_judge_cannot_take(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    bad = [*examples(3), example(7, **fields)]
    section = _section(tmp_path, cal="cal.jsonl", test="test.jsonl")
    none, wrong = Examples.write([]), Examples.write(bad)
    check_splits(RunSplits(none, none, test=Examples.write(examples(3))), section)
    for splits, name in (
        (RunSplits(none, none, cal=wrong), "cal"),
        (RunSplits(none, none, test=wrong), "test"),
    ):
        with pytest.raises(CustosError, match=rf"^{name}\.jsonl: row '7': .*{message}"):
            check_splits(splits, section)


@pytest.mark.parametrize("split", ["train", "val", "cal", "test"])
def test_a_broken_picture_is_named_with_its_row(tmp_path: Path, split: str) -> None:
    whole = Path(save_picture(tmp_path / "whole.jpg", 300, 200))
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(whole.read_bytes()[:-500])
    images = [whole, whole, cut, tmp_path / "none.jpg"]
    rows = [example(i, images=(str(image),)) for i, image in enumerate(images)]
    path = write_split(tmp_path / "pictured.jsonl", rows)
    files = [path] if split == "train" else path
    with pytest.raises(
        CustosError,
        match=r"pictured\.jsonl row 3: field 'images': '.*cut\.jpg' is not a readable picture: it",
    ):
        read_splits(_section(tmp_path, **{split: files}))


def test_tables_of_other_columns_and_labels(tmp_path: Path) -> None:
    sheet = "question,gold,answer,grade\n1+1?,2,2,right\n1+2?,3,4,wrong\n"
    (tmp_path / "train.csv").write_text(sheet)
    (tmp_path / "mapping.yaml").write_text(
        "columns: {references: gold, response: answer, label: grade}\nlabels: {right: Correct}\n"
    )
    data = DataSection(
        train=(tmp_path / "train.csv",),
        val=tmp_path / "train.csv",
        mapping=tmp_path / "mapping.yaml",
    )
    splits = read_splits(data)
    assert [(row.label, row.references) for row in splits.train] == [
        ("Correct", ("2",)),
        ("Wrong", ("3",)),
    ]
    assert splits.train[0].id == f"{tmp_path / 'train.csv'} row 1"
    assert data.model_dump(mode="json")["mapping"]["labels"] == {"right": "Correct"}


def test_labels_of_a_table_that_no_mapping_translates(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "question,references,response,label\n?,x,y,right\n?,x,y,Wrong\n"
    )
    with pytest.raises(
        CustosError, match="1 of 2 rows.*'right'.*not among them.*labels right=Correct$"
    ):
        read_splits(DataSection(train=(tmp_path / "a.csv",), val=tmp_path / "a.csv"))
