"""``custos eval`` and ``custos card`` with a chat model beside the judge, over a real socket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.judge import Judge
from tests.cli.measuring.made_up import label_of, report_of, run, write_answers
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.serve.made_up import FakeJudge

pytestmark = pytest.mark.usefixtures("no_pictures")
KEY = "secret-of-the-chat-model"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        server.answer = by_question_mark
        yield server


@pytest.fixture(autouse=True)
def judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge(source))
    monkeypatch.setenv("CHAT_KEY", KEY)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_answers(tmp_path / "labels.jsonl", 6)


def by_question_mark(seen: Seen) -> Say:
    """Agree with people on all rows."""
    response = seen.text.rpartition("Response: ")[2]
    return Say(body=completion(label_of(response)))


def chat(fake: FakeServer, *models: str) -> list[str]:
    named = [word for model in models or ("big/model",) for word in ("--chat-model", model)]
    return [*named, "--chat-url", fake.url, "--chat-key-env", "CHAT_KEY"]


def test_a_chat_model_stands_beside_the_judge(fake: FakeServer, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(data, out, *chat(fake, "big/model", "other"))
    assert result.exit_code == 0
    report = report_of(out)
    assert {"chat big/model", "chat other"} <= report["baselines"].keys()
    beside = report["baselines"]["chat big/model"]
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(5 / 6)
    assert (beside["accuracy"]["value"], beside["accuracy"]["n"]) == (1, 6)
    assert beside["gain"]["value"] == pytest.approx(-1 / 6)
    assert (beside["judge_only_right"], beside["baseline_only_right"]) == (0, 1)
    assert {seen.headers["authorization"] for seen in fake.seen} == {f"Bearer {KEY}"}
    assert Counter(seen.body["model"] for seen in fake.seen) == {"big/model": 6, "other": 6}
    assert "chat big/model" in result.stdout
    assert "| chat big/model |" in (out / "report.md").read_text()
    for file in out.iterdir():
        assert KEY not in file.read_text(errors="replace")
    assert not list(out.glob("*.partial"))


def test_answers_that_were_paid_for_are_kept(fake: FakeServer, data: Path, tmp_path: Path) -> None:
    """Ask again only for the rows that failed, once the server is up."""
    out = tmp_path / "out"
    fake.answer = lambda seen: (
        Say(400, "no") if "Rome" in seen.text or "Nice" in seen.text else by_question_mark(seen)
    )
    first = run(data, out, *chat(fake))
    assert first.exit_code == 0
    assert report_of(out)["baselines"]["chat big/model"]["coverage"]["value"] == pytest.approx(
        4 / 6
    )
    assert "2 failed, kept in" in first.output
    fake.answer = by_question_mark
    fake.seen.clear()
    assert run(data, out, *chat(fake), "--retry-failed").exit_code == 0
    assert len(fake.seen) == 2
    report = report_of(out)
    assert report["baselines"]["chat big/model"]["accuracy"]["n"] == 6
    assert not list(out.glob("*.partial"))


def test_a_chat_model_that_labels_nothing_is_an_error_and_the_judges_work_is_kept(
    fake: FakeServer, data: Path, tmp_path: Path
) -> None:
    fake.answer = lambda seen: Say(body=completion("I cannot say."))
    result = run(data, tmp_path / "out", *chat(fake))
    assert result.exit_code == 1
    assert "--chat-model big/model: no row got a label" in result.output
    assert (tmp_path / "out/report-verdicts.jsonl.partial").exists()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--chat-model", "m"], "--chat-model NAME and --chat-url URL go together"),
        (["--chat-url", "http://127.0.0.1:1/v1"], "--chat-model NAME and --chat-url URL go"),
        (
            ["--chat-model", "m", "--chat-model", "m", "--chat-url", "http://127.0.0.1:1/v1"],
            "--chat-model m: given twice",
        ),
        (
            ["--chat-model", "m", "--chat-url", "http://h/v1", "--chat-key-env", "NO_SUCH"],
            "--chat-key-env 'NO_SUCH': no such environment variable",
        ),
    ],
)
def test_options_that_do_not_go_together(
    data: Path, tmp_path: Path, options: list[str], fault: str
) -> None:
    result = CliRunner().invoke(
        app, ["eval", "run", "--data", str(data), "--out", str(tmp_path / "out"), *options]
    )
    assert result.exit_code != 0
    assert fault in f"{result.output}{result.exception}"


def test_a_card_shows_the_chat_model(fake: FakeServer, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "card"
    result = CliRunner().invoke(
        app,
        ["card", "run", "--data", f"mine={data}", "--out", str(out), *chat(fake)],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    card = report_of(out, "reliability.json")
    assert card["data"]["mine"]["baselines"]["chat big/model"]["accuracy"]["value"] == 1
