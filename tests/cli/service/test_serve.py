import logging
import re
import signal
import subprocess
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from cli.main import app
from serve.server import bind
from tests.cuda_stand_in import with_gpus
from tests.forks import custos_with, forked
from tests.serve.made_up import FakeJudge


def test_serves_until_interrupted() -> None:
    judges = ("--judge", "qs=one", "--judge", "runs/two")
    with forked(custos_with, FakeJudge, "serve", *judges, "--port", "0") as process:
        process.wait_for("try: .*\n")
        first, second = process.stdout.splitlines()
        announced = re.fullmatch(r"serving qs, two at (http://127\.0\.0\.1:\d+)", first)
        assert announced
        example = second.removeprefix("try: ")
        assert example.startswith(f"curl -s {announced[1]}/judge ")
        assert httpx.get(f"{announced[1]}/health").json() == {"status": "ready"}
        cards = httpx.get(f"{announced[1]}/judges").json()["judges"]
        assert [card["name"] for card in cards] == ["qs", "two"]
        done = subprocess.run(example, shell=True, capture_output=True, text=True, check=True)
        assert '"label":"Correct"' in done.stdout
        assert '"judge":"one/hieval-qs"' in done.stdout
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr


def test_a_port_in_use_is_an_error_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cli.service.serve.load_judge", lambda *_: pytest.fail("loaded"))
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "--judge", "embedded", "--port", str(port)])
    assert result.exit_code != 0
    assert f"error: cannot listen on 127.0.0.1 port {port}" in result.stderr
    assert "--port" in result.stderr


@pytest.mark.parametrize("gpus", [0, 1])
def test_the_log_names_the_gpu_of_the_judges(
    gpus: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load_judge(*_: Any, **__: Any) -> FakeJudge:
        return FakeJudge()

    with_gpus(monkeypatch, gpus)
    monkeypatch.setattr("cli.service.serve.load_judge", load_judge)
    monkeypatch.setattr("serve.pages.examples.warm_up", lambda judge: None)
    monkeypatch.setattr("serve.server.run", lambda app, service, listener, load, *_: load())
    with caplog.at_level(logging.INFO, "custos.serve"):
        result = CliRunner().invoke(app, ["serve", "--judge", "m=mine", "--port", "0"])
    assert result.exit_code == 0, result.output
    assert sum("NVIDIA Stand-in" in message for message in caplog.messages) == gpus


def test_a_model_server_is_given_up_before_those_who_wait_give_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Any] = []

    def load_judge(*settings: Any, **patience: Any) -> FakeJudge:
        given.append((settings[-1], patience))
        return FakeJudge()

    monkeypatch.setattr("cli.service.serve.load_judge", load_judge)
    monkeypatch.setattr("serve.server.run", lambda app, service, listener, load, *_: load())
    command = "serve --engine openai --base-url http://127.0.0.1:9/v1 --judge m --port 0"
    result = CliRunner().invoke(app, [*command.split(), "--deadline", "60"])
    assert result.exit_code == 0, result.output
    [(deadline, patience)] = given
    tries = patience["tries"]
    assert tries * deadline + (tries - 1) * patience["longest_wait"] <= 60
