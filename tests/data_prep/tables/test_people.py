"""Labels of several people: columns, cells that hold several, and rows of one person each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data_prep.tables.examples import read_examples
from data_prep.tables.labels import UnknownLabel
from data_prep.tables.mapping import TableMapping, read_mapping, write_mapping
from data_prep.tables.reader import read_table
from judging.errors import CustosError, FieldError
from judging.types import LabelledExample
from tests.data_prep.tables.made_up import HEAD, ROW, examples, lines, save

PEOPLE = TableMapping.model_validate({"annotators": ["anna", "ben"]})
WORDS = {"right": "Correct", "partly": "Partial", "wrong": "Wrong", "skip": ""}


def test_columns_of_single_people(tmp_path: Path) -> None:
    text = f"{HEAD},anna,ben,carla,note\n?,x,y,right,WRONG,Right,n\n?,x,z,,wrong,skip,\n"
    path = save(tmp_path / "labels.csv", text)
    first, second = examples(path, annotators=["anna", "ben", "carla"], labels=WORDS)
    assert first.annotator_labels == {"anna": "Correct", "ben": "Wrong", "carla": "Correct"}
    assert (first.label, first.metadata) == ("Correct", {"note": "n"})
    assert (second.label, second.annotator_labels) == ("Wrong", {"ben": "Wrong"})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"anna": "Correct", "ben": "wrong", "carla": None}, {"anna": "Correct", "ben": "Wrong"}),
        (["Wrong", None, "Wrong"], {"person 1": "Wrong", "person 3": "Wrong"}),
        (
            [{"annotator": 7, "label": "Wrong"}, {"annotator": "z", "label": "Correct"}],
            {"7": "Wrong", "z": "Correct"},
        ),
    ],
)
def test_cells_that_hold_several(tmp_path: Path, given: Any, wanted: dict[str, str]) -> None:
    [row] = examples(lines(tmp_path / "rows.jsonl", {**ROW, "annotator_labels": given}))
    assert row.annotator_labels == wanted
    path = lines(tmp_path / "nested.jsonl", {**ROW, "metadata": {"votes": given}})
    [row] = examples(path, columns={"annotator_labels": "metadata.votes"})
    assert row.annotator_labels == wanted
    cell = json.dumps(given).replace('"', '""')
    path = save(tmp_path / "cells.csv", f'{HEAD},annotator_labels\n?,x,y,"{cell}"\n')
    [row] = examples(path)
    assert row.annotator_labels == wanted


@pytest.mark.parametrize(
    "given", [[{"who": "anna"}], 7.5, [{"annotator": "a", "label": "Wrong"}] + [
        {"annotator": "a", "label": "Correct"}]],
)  # fmt: skip
def test_cells_that_hold_no_labels_of_people(tmp_path: Path, given: Any) -> None:
    path = lines(tmp_path / "rows.jsonl", {**ROW, "annotator_labels": given})
    with pytest.raises(FieldError) as error:
        list(read_table(path, LabelledExample))
    assert error.value.field.startswith("annotator_labels")


def test_an_unknown_label_names_the_column(tmp_path: Path) -> None:
    path = save(tmp_path / "rows.csv", f"{HEAD},anna,ben\n?,x,y,Correct,so-so\n")
    with pytest.raises(UnknownLabel) as error:
        list(read_table(path, LabelledExample, PEOPLE))
    assert (error.value.column, error.value.label) == ("ben", "so-so")


def test_rows_of_one_person_each(tmp_path: Path) -> None:
    """Long form, as most tools export it: a row for each label."""
    table = [f"id,{HEAD},who,label,seconds,domain"]
    for id, person, label, seconds in (
        *(("1", "anna", "Correct", 3), ("1", "ben", "Wrong", 4), ("1", "carla", "Wrong", 5)),
        *(("2", "anna", "Wrong", 6), ("3", "ben", "Correct", 7), ("3", "anna", "Correct", 7)),
    ):
        table.append(f"{id},Which {id}?,x,y,{person},{label},{seconds},law")
    path = save(tmp_path / "long.csv", "\n".join(table))
    rows = read_examples(path, TableMapping(columns={"annotators": "who"}))
    assert [number for number, _ in rows] == [1, 4, 5]
    first, second, third = [row for _, row in rows]
    assert first.annotator_labels == {"anna": "Correct", "ben": "Wrong", "carla": "Wrong"}
    assert (first.label, first.annotators) == ("Wrong", ("anna", "ben", "carla"))
    assert first.metadata == {"domain": "law"}, "what people do not share is left out"
    assert (second.annotator_labels, second.metadata["seconds"]) == ({"anna": "Wrong"}, "6")
    assert third.metadata["seconds"] == "7"


def test_rows_that_are_not_of_one_person_stay(tmp_path: Path) -> None:
    rows = [
        {**ROW, "label": "Wrong", "annotators": ["a", "b"]},
        {**ROW, "label": "Wrong", "annotators": ["a", "b"]},
        {**ROW, "label": "Correct", "annotators": ["a"], "metadata": {"answerer": "m1"}},
        {**ROW, "label": "Correct", "annotators": ["b"], "metadata": {"answerer": "m2"}},
    ]
    read = examples(lines(tmp_path / "rows.jsonl", *rows))
    assert len(read) == 4
    assert not any(row.annotator_labels for row in read)


def test_annotators_of_a_mapping_are_columns(tmp_path: Path) -> None:
    path = save(tmp_path / "mapping.yaml", "annotators: [anna, ben]\ncolumns: {response: answer}\n")
    mapping = read_mapping(path)
    assert mapping.columns == {
        **{"annotator_labels.anna": "anna", "annotator_labels.ben": "ben"},
        "response": "answer",
    }
    write_mapping(tmp_path / "again.yaml", mapping)
    assert read_mapping(tmp_path / "again.yaml") == mapping
    for wrong in ("annotators: anna", "annotators: {a: b}", "columns: {annotator_labels.: x}"):
        with pytest.raises(CustosError):
            read_mapping(save(tmp_path / "wrong.yaml", wrong))
