"""Groups of options, tables of the user, and judges by name, by address and on a server."""

import base64
import contextlib
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from cli.main import app
from cli.shared.judges import (
    EngineOnUse,
    EngineOptions,
    default_judges,
    named_sources,
    share_weights,
    untrained_judge,
)
from cli.shared.options import with_groups
from cli.shared.tables import TableOptions, read_requests
from data_prep.tables.mapping import TableMapping, write_mapping
from judging.errors import CustosError, FieldError
from judging.files.opening import TextFormat
from judging.judge import Judge
from judging.judge.card import CARD_FILE
from judging.models.backbones import load_backbone
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict
from tests.clients.fake_server import FakeServer
from tests.clients.remote.vllm_replies import VllmReplies
from tests.conftest import Folders
from tests.cuda_stand_in import with_gpus
from tests.serve.made_up import FakeJudge, row
from tests.tiny import save_picture


@dataclass(frozen=True)
class Colours:
    """Two colours."""

    red: Annotated[int, typer.Option(help="Red.")]
    green: Annotated[int, typer.Option("--verdant", min=0, help="Green.")] = 3


painter = typer.Typer()


@painter.command()
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
    assert CliRunner().invoke(painter, arguments).stdout == f"{painted}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wall"], "Missing option '--red'"),
        (["wall", "--red", "1", "--verdant", "-1"], "--verdant"),
    ],
)
def test_fields_are_checked_as_options_are(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(painter, arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_group_itself_is_no_option() -> None:
    assert "colours" not in CliRunner().invoke(painter, ["--help"]).stdout


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


runner = CliRunner()


def rows(folder: Path) -> Path:
    row = {"question": "q", "references": ["19"], "task": "truthful-reward"}
    answers = ("19", "eleven", "")
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row | {"response": text}) + "\n" for text in answers))
    return path


@pytest.mark.parametrize("gpus", [0, 1])
def test_grading_names_the_gpu_that_judges(
    gpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> FakeJudge:
        return FakeJudge()

    with_gpus(monkeypatch, gpus)
    monkeypatch.setattr("cli.shared.judges.EngineOptions.load_judge", load)
    options = EngineOptions()
    with contextlib.redirect_stderr(io.StringIO()) as shown:
        options.load_grader(["mine"])
        options.load_grader(["rules"])
        EngineOptions(engine="openai", base_url=["http://127.0.0.1:9/v1"]).load_grader(["mine"])
    assert shown.getvalue().count("NVIDIA Stand-in") == gpus
    assert bool(shown.getvalue()) == bool(gpus)


def test_grading_on_a_server_is_grading_here(
    tiny_folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folders("qwen2_5_vl")
    monkeypatch.setenv("SERVER_KEY", "sk-secret")
    given = ["grade", "--in", str(rows(tmp_path))]
    remote = ["--engine", "openai", "--judge", f"m={folder}", "--key-env", "SERVER_KEY"]
    with FakeServer().running() as server:
        server.answer = VllmReplies(load_backbone(folder, dtype="float32", device="cpu"))
        there = ["--out", str(tmp_path / "there.jsonl"), "--base-url", server.url]
        done = runner.invoke(app, [*given, *remote, *there])
        assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer sk-secret"}
    assert done.exit_code == 0, done.output
    assert "m at http://127.0.0.1" in done.output and "exact posterior" in done.output
    here = ["--judge", folder, "--out", str(tmp_path / "here.jsonl")]
    assert runner.invoke(app, [*given, *here]).exit_code == 0
    for one, other in zip(
        *((tmp_path / name).read_text().splitlines() for name in ("there.jsonl", "here.jsonl")),
        strict=True,
    ):
        found, expected = json.loads(one), json.loads(other)
        assert found["status"] == expected["status"] != "judge_error"
        # Here in bfloat16, which keeps three digits.
        given_here = expected.get("probabilities", {})
        assert found.get("probabilities", {}) == pytest.approx(given_here, abs=0.05)


@pytest.mark.parametrize("verb", ["grade", "eval", "serve"])
def test_a_token_budget_reaches_the_model_on_this_machine(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(source: str, *, token_budget: int) -> FakeJudge:
        raise CustosError(f"{source} with {token_budget}")

    monkeypatch.setattr(Judge, "load", load)
    row = {"question": "q", "references": ["19"], "response": "19", "label": "Correct"}
    (tmp_path / "labelled.jsonl").write_text(json.dumps(row) + "\n")
    source = str(tmp_path / "labelled.jsonl")
    command = {
        "grade": ["grade", "--judge", "m", "--in", source, "--out", str(tmp_path / "out.jsonl")],
        "eval": ["eval", "m", "--data", source, "--out", str(tmp_path / "out")],
        "serve": ["serve", "--judge", "m", "--port", "0"],
    }[verb]
    result = runner.invoke(app, [*command, "--token-budget", "77"])
    assert result.stderr.splitlines()[-1] == "error: m with 77"


def test_a_token_budget_is_for_models_on_this_machine() -> None:
    server = EngineOptions(engine="openai", base_url=["http://127.0.0.1:9/v1"], token_budget=77)
    for options, judge in ((server, "m"), (EngineOptions(token_budget=77), "http://127.0.0.1:9")):
        with pytest.raises(CustosError, match="--token-budget"):
            options.load_judge_or_service(judge)


def test_served_models_go_by_their_names_there() -> None:
    given = ["qs=runs/qs", "gpt-4o", "org/model"]
    assert named_sources(given, "openai") == {
        "qs": "qs=runs/qs",
        "gpt-4o": "gpt-4o",
        "org/model": "org/model",
    }
    with pytest.raises(CustosError, match="there is already a judge 'qs'"):
        named_sources(["qs=a", "qs=b"], "openai")


def test_shipped_judges_or_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.judge.card.SHIPPED", tmp_path)
    with pytest.raises(CustosError, match="--judge NAME=RUN.*--judge embedded"):
        default_judges()
    backbones = {"c": "embedded@2", "b": "embedded@1", "a": "qwen2.5-coder-0.5b"}
    for name, backbone in backbones.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / CARD_FILE).write_text(json.dumps({"backbone": backbone}))
    (tmp_path / "notes").mkdir()
    assert default_judges() == ["b", "c"], "the other one would fetch its backbone"


def test_names_and_sources() -> None:
    assert named_sources(["qs=runs/a=b", "runs/hieval", "embedded"]) == {
        "qs": "runs/a=b",
        "hieval": "runs/hieval",
        "embedded": "embedded",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["=run"], "--judge '=run': expected NAME=RUN"),
        (["qs="], "--judge 'qs=': expected NAME=RUN"),
        (["a=x", "b/a"], "--judge 'b/a': there is already a judge 'a'"),
    ],
)
def test_names_that_are_refused(given: list[str], message: str) -> None:
    with pytest.raises(CustosError, match=re.escape(message)):
        named_sources(given)


def parameters(judge: Judge) -> dict[str, torch.nn.Parameter]:
    model = getattr(judge.engine, "model", None)
    assert isinstance(model, torch.nn.Module)
    return dict(model.named_parameters())


def test_equal_weights_are_kept_once_and_verdicts_stay(tiny_folder: str) -> None:
    first, second = (Judge.load(tiny_folder, device="cpu") for _ in range(2))
    request = JudgeRequest.model_validate(row())
    before = list(second.grade([request]))
    changed = parameters(second)
    name = next(name for name in changed if name.endswith("q_proj.weight"))
    changed[name].data += 1
    expected = list(second.grade([request]))
    assert expected != before

    share_weights([first, second])
    assert list(second.grade([request])) == expected
    assert list(first.grade([request])) == before
    shared = parameters(first)
    assert {key for key in changed if changed[key].data_ptr() != shared[key].data_ptr()} == {name}


def test_it_is_loaded_when_a_model_is_needed_and_decides_as_if_it_had_been() -> None:
    loaded: list[Judge] = []
    judge = untrained_judge(loaded.append)
    assert isinstance(judge.engine, EngineOnUse)
    num_layers = 0

    def count_layer() -> None:
        nonlocal num_layers
        num_layers += 1

    judge.call_between_layers(count_layer)
    rule, model = (
        JudgeRequest.model_validate(get_task(name).example_row())
        for name in ("chartom-fact", "charthal")
    )
    keys = [judge.fingerprint(request) for request in (rule, model)]
    [by_rule] = judge.grade([rule])
    assert (by_rule.label, loaded) == ("Correct", [])
    [by_model] = judge.grade([model])
    assert num_layers >= 30
    [direct] = loaded
    assert keys == [direct.fingerprint(request) for request in (rule, model)]
    [expected] = direct.grade([model])
    assert by_model.model_dump() == expected.model_dump()
    assert by_model.message == "not measured on this task"
