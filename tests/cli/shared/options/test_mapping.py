from __future__ import annotations

from pathlib import Path

import pytest

from cli.shared.options.mapping import TableOptions
from data_prep.tables.mapping import TableMapping, write_mapping
from judging.errors import CustosError, FieldError
from judging.files.opening import TextFormat


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text("columns: {references: gold, label: l}\nseparator: '|'\nlabels: {a: Wrong}\n")
    options = TableOptions(
        columns=["label=grade"],
        labels=["b=Correct,a=Partial", "c=Wrong"],
        mapping=path,
        reference_mode="any",
    )
    assert options.read() == TableMapping(
        columns={"references": "gold", "label": "grade"},
        labels={"a": "Partial", "b": "Correct", "c": "Wrong"},
        separator="|",
        reference_mode="any",
    )


@pytest.mark.parametrize(
    ("columns", "labels", "message"),
    [
        (["references"], None, "--map 'references': expected OURS=THEIRS"),
        (["label=a", "label=b"], None, "--map 'label=b': expected OURS=THEIRS, each field once"),
        (["refs=a"], None, "'refs' is not one of our fields"),
        (None, ["right"], "--labels 'right': expected THEIRS=OURS"),
        (None, ["a=Wrong,a=Correct"], "--labels 'a=Correct': expected .*each label once"),
    ],
)
def test_options_that_are_refused(
    columns: list[str] | None, labels: list[str] | None, message: str
) -> None:
    with pytest.raises(CustosError, match=message):
        TableOptions(columns=columns, labels=labels).read()


@pytest.mark.parametrize("delimiter", ["semicolon", ";"])
def test_delimiter_and_encoding_are_part_of_the_mapping(tmp_path: Path, delimiter: str) -> None:
    options = TableOptions(delimiter=delimiter, encoding="cp1252")
    assert options.read().text_format == TextFormat(";", "cp1252")
    assert ["--delimiter", delimiter, "--encoding", "cp1252"] == options.words()
    write_mapping(tmp_path / "m.yaml", TableMapping(delimiter="tab"))
    assert TableOptions(mapping=tmp_path / "m.yaml").read().text_format == TextFormat("\t")


@pytest.mark.parametrize("options", [{"delimiter": "dot dot"}, {"encoding": "hex"}])
def test_what_is_no_delimiter_or_encoding_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(FieldError) as error:
        TableOptions(**options).read()  # type: ignore[arg-type]  # all are texts
    assert error.value.field in options
