"""``custos grade`` and ``custos bench grade`` with a service as the judge."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving_judges


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_grade(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    responses = ["Paris" if number % 2 else "Rome" for number in range(30)]
    source.write_text("".join(json.dumps(row(response)) + "\n" for response in responses))
    with serving_judges({"fake": FakeJudge()}) as url:
        assert "30 scored" in run("grade", "--judge", url, "--in", source, "--out", out)
    labels = [json.loads(line)["label"] for line in out.read_text().splitlines()]
    assert labels == ["Correct" if response == "Paris" else "Wrong" for response in responses]


def test_the_key_comes_from_where_doctor_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(row("Paris")) + "\n")
    monkeypatch.setenv("CUSTOS_KEY", "a-key-of-sixteen")
    monkeypatch.setenv("OTHER_KEY", "another-of-sixteen")
    for key, options in (("a-key-of-sixteen", []), ("another-of-sixteen", ["OTHER_KEY"])):
        with serving_judges({"fake": FakeJudge()}, keys=(key,)) as url:
            named = [part for name in options for part in ("--key-env", name)]
            run("grade", "--judge", url, "--in", source, "--out", out, *named)


def test_services_share_the_rows(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    responses = ["Paris" if number % 2 else "Rome" for number in range(60)]
    source.write_text("".join(json.dumps(row(response)) + "\n" for response in responses))
    judges = [FakeJudge(), FakeJudge()]
    with (
        serving_judges({"fake": judges[0]}) as first,
        serving_judges({"fake": judges[1]}) as second,
    ):
        command = ["grade", "--in", source, "--out", out, "--judge", first, "--judge", second]
        assert "60 scored" in run(*command, "--judge", "http://127.0.0.1:9")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["row"] for line in lines] == list(range(1, 61))
    assert [line["label"] == "Correct" for line in lines] == [r == "Paris" for r in responses]


def test_several_judges_must_be_services(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(row("Paris")) + "\n")
    command = ["grade", "--judge", "http://127.0.0.1:9", "--judge", "embedded-qs"]
    options = ["--in", str(source), "--out", str(tmp_path / "out.jsonl")]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 2
    assert "error: --judge embedded-qs: several judges share the rows" in result.stderr


def test_bench_grade(tmp_path: Path) -> None:
    item = {
        "figure_id": 1,
        **{"figure_path": "images/1.jpg", "subq_idx": 1, "q_type": "desc", "q_relation": "normal"},
        **{"question": "How much rain fell in June?", "ref_answer": "40 mm"},
    }
    source, out = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(
        json.dumps({"1": item | {"response": "40 mm"}, "2": item | {"response": "9"}})
    )
    with serving_judges({"knowing": KnowingJudge(tasks=("charthal",))}) as url:
        run("bench", "grade", "charthal", "--judge", url, "--responses", source, "--out", out)
    graded = json.loads(out.read_text())
    assert (graded["1"]["score"], graded["2"]["score"]) == (1, 0)
