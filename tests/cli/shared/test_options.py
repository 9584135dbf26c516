"""Groups of options, tables of the user, and their rows as requests."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from cli.shared.options import with_groups
from cli.shared.tables import TableOptions, read_requests
from data_prep.tables.mapping import TableMapping, write_mapping
from judging.errors import CustosError, FieldError
from judging.files.opening import TextFormat
from judging.types import JudgeRequest, Verdict
from tests.serve.made_up import row
from tests.tiny import save_picture


@dataclass(frozen=True)
class Colours:
    """Two colours."""

    red: Annotated[int, typer.Option(help="Red.")]
    green: Annotated[int, typer.Option("--verdant", min=0, help="Green.")] = 3


app = typer.Typer()


@app.command()
@with_groups
def paint(
    name: Annotated[str, typer.Argument()],
    is_wet: Annotated[bool, typer.Option("--wet")] = False,
    *,
    colours: Colours,
) -> None:
    """Paint."""
    typer.echo(f"{name} {is_wet} {colours.red} {colours.green}")


@pytest.mark.parametrize(
    ("arguments", "painted"),
    [
        (["wall", "--red", "2"], "wall False 2 3"),
        (["wall", "--verdant", "0", "--red", "2", "--wet"], "wall True 2 0"),
    ],
)
def test_fields_of_a_group_are_options(arguments: list[str], painted: str) -> None:
    assert CliRunner().invoke(app, arguments).stdout == f"{painted}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wall"], "Missing option '--red'"),
        (["wall", "--red", "1", "--verdant", "-1"], "--verdant"),
    ],
)
def test_fields_are_checked_as_options_are(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_group_itself_is_no_option() -> None:
    assert "colours" not in CliRunner().invoke(app, ["--help"]).stdout


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


def test_pictures_are_named_relative_to_the_file(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    (tmp_path / "a").mkdir()
    content = Path(save_picture(tmp_path / "a/b.png", 40, 30)).read_bytes()
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    rows = [row(images=["a/b.png", url]), row()]
    source.write_text("".join(json.dumps(fields) + "\n" for fields in rows))
    [(_, pictured), (_, plain)] = read_requests(source)
    assert isinstance(pictured, JudgeRequest)
    assert isinstance(plain, JudgeRequest)
    assert pictured.images == (str(tmp_path.resolve() / "a/b.png"), url)
    assert plain.images == ()


def test_a_broken_picture_is_known_before_a_judge_is(tmp_path: Path) -> None:
    picture, source = tmp_path / "cut.jpg", tmp_path / "in.jsonl"
    content = Path(save_picture(picture, 300, 200)).read_bytes()
    picture.write_bytes(content[: len(content) // 2])
    source.write_text("".join(json.dumps(row(images=[n])) + "\n" for n in ("cut.jpg", "no.jpg")))
    reasons = {"cut.jpg": "it is broken or cut off", "no.jpg": "there is no such file"}
    for (number, verdict), name in zip(read_requests(source), reasons, strict=True):
        assert isinstance(verdict, Verdict)
        assert (verdict.id, verdict.status) == (str(number), "invalid")
        path = tmp_path.resolve() / name
        message = f"field 'images': '{path}' is not a readable picture: {reasons[name]}"
        assert verdict.message == message


def test_a_risk_of_the_command_goes_before_that_of_a_row(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(fields) + "\n" for fields in (row(risk=0.2), row())))

    def risks(stated: float | None) -> list[float | None]:
        requests = (request for _, request in read_requests(source, None, stated))
        return [request.risk for request in requests if isinstance(request, JudgeRequest)]

    assert risks(None) == [0.2, None]
    assert risks(0.05) == [0.05, 0.05]
