import logging
import re
import signal
import subprocess
import time
from importlib import import_module
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from cli.main import app
from serve.server import bind
from tests.cuda_stand_in import with_gpus
from tests.forks import custos_with, forked
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import wait_until


def load_pair(source: str) -> FakeJudge:
    return FakeJudge(source, ("truthful-pair",))


def load_slowly(source: str) -> FakeJudge:
    time.sleep(300)
    return FakeJudge(source)


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


def test_an_interrupt_while_judges_load_does_not_wait_for_them() -> None:
    with forked(custos_with, load_slowly, "serve", "--judge", "qs=one", "--port", "0") as process:
        match = process.wait_for(r"INFO loading qs; (http://127\.0\.0\.1:\d+) answers 503 until")
        wait_until(lambda: answers(f"{match[1]}/health/ready", 503))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stdout == ""  # it says "serving" only when it answers
        assert "Traceback" not in process.stderr


def answers(url: str, status: int) -> bool:
    try:
        return httpx.get(url).status_code == status
    except httpx.ConnectError:
        return False


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


def test_the_call_to_try_suits_the_judge_that_is_served() -> None:
    with forked(custos_with, load_pair, "serve", "--judge", "pair=one", "--port", "0") as process:
        example = process.wait_for("try: (.*)\n")[1]
        done = subprocess.run(example, shell=True, capture_output=True, text=True, check=True)
        assert '"status":"scored"' in done.stdout


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::"])
def test_other_hosts_are_refused(host: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--judge", "embedded", "--host", host])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: --host '{host}': other machines could call")


@pytest.mark.parametrize("gpus", [0, 1])
def test_the_log_names_the_gpu_of_the_judges(
    gpus: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load_judge(*_: Any, **__: Any) -> FakeJudge:
        return FakeJudge()

    with_gpus(monkeypatch, gpus)
    monkeypatch.setattr("cli.service.serve.load_judge", load_judge)
    monkeypatch.setattr(import_module("serve.pages.routes"), "warm_up", lambda judge: None)
    monkeypatch.setattr("serve.server.run", lambda app, service, listener, load, *_: load())
    with caplog.at_level(logging.INFO, "custos.serve"):
        result = CliRunner().invoke(app, ["serve", "--judge", "m=mine", "--port", "0"])
    assert result.exit_code == 0, result.output
    assert sum("NVIDIA Stand-in" in message for message in caplog.messages) == gpus


@pytest.mark.parametrize(
    ("options", "allowed"), [([], set()), (["--allow-unmeasured", "criterion"], {"criterion"})]
)
def test_what_the_operator_allows_holds_for_named_judges_and_for_the_untrained_one(
    options: list[str], allowed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[dict[str, Any]] = []

    def load_judge(*_: Any, **__: Any) -> FakeJudge:
        return FakeJudge()

    monkeypatch.setattr("cli.service.serve.load_judge", load_judge)
    monkeypatch.setattr("serve.pages.examples.warm_up", lambda judge: None)
    monkeypatch.setattr(
        "serve.server.run", lambda app, service, listener, load, *_: loaded.append(load())
    )
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert result.exit_code == 0, result.output
    [judges] = loaded
    assert "embedded" in judges
    assert all(set(judge.allowed) == allowed for judge in judges.values())
    assert ("criterion" in judges["embedded"].tasks) is bool(allowed)


def test_a_task_to_allow_that_is_none_is_named() -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--allow-unmeasured", "criteria"])
    assert result.exit_code != 0
    assert "'criteria' is not one of" in result.stderr


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
