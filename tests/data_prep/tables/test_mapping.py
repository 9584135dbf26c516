from __future__ import annotations

from pathlib import Path

import pytest

from data_prep.tables.mapping import TableMapping, read_mapping
from judging.errors import CustosError
from judging.types import parse_record
from tests.data_prep.tables.made_up import save

FILE = """\
columns:
  references: gold
  metadata.answerer: model
labels:
  1: Correct
  no: Wrong
separator: "|"
reference_mode: any
"""


def test_a_file_is_read_as_texts(tmp_path: Path) -> None:
    mapping = read_mapping(save(tmp_path / "mapping.yaml", FILE))
    assert mapping.columns == {"references": "gold", "metadata.answerer": "model"}
    assert mapping.labels == {"1": "Correct", "no": "Wrong"}
    assert mapping.given == {"reference_mode": "any"}
    assert read_mapping(save(tmp_path / "empty.yaml", "")) == TableMapping()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "columns: {refs: gold}",
            "'refs' is not one of our fields; the nearest is 'references'$",
        ),
        ("columns: {xyz: gold}", "is not one of our fields; take response, .*metadata.NAME"),
        ("columns: {reference: gold}", "'reference' is not one .*the nearest is 'references'"),
        ("columns: {response: a, response_a: b}", "map 'response', or 'response_a' and"),
        (
            "column: {}",
            "no such key 'column' of a mapping; the nearest is 'columns'; the keys are columns, ",
        ),
        ("task: hieval", "field 'task': 'hieval' is not one of charthal"),
        ("separator: ''", "field 'separator'"),
        ("- 1", "mapping.yaml"),
        ("a: [", "not valid YAML"),
        ("columns:\n  response: a\n  response: b", "'response' occurs twice(.|\\n)*line 3"),
    ],
)
def test_files_that_are_no_mappings(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(CustosError, match=message):
        read_mapping(save(tmp_path / "mapping.yaml", content))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="no such mapping"):
        read_mapping(tmp_path / "mapping.yaml")


def test_truth_values_of_a_recipe_are_refused() -> None:
    with pytest.raises(CustosError, match="quote them"):
        parse_record(TableMapping, {"labels": {True: "Correct"}}, "recipe.yaml")
    assert parse_record(TableMapping, {"labels": {1: "Correct"}}, "").labels == {"1": "Correct"}


def test_a_missing_mapping_names_the_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "mapping.yaml").write_text("task: hieval-qs", encoding="utf-8")
    nearest = r"maping\.yaml: no such mapping; the nearest is '.*/mapping\.yaml'$"
    with pytest.raises(CustosError, match=nearest):
        read_mapping(tmp_path / "maping.yaml")


def test_a_key_that_is_half_a_character_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text('"\\ud800": 1')
    with pytest.raises(CustosError, match="mapping.yaml: a name holds half a character"):
        read_mapping(path)
