import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from cli.main import app
from serve.server import bind
from tests.serve.made_up import FakeJudge

SERVER = """
import sys
sys.path.insert(0, "{repository}")
from judging import Judge
from tests.serve.made_up import FakeJudge
Judge.load = FakeJudge
from cli.main import app
from cli.shared.judges import default_judges, named_sources
app()
"""


def started(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script.format(repository=Path(__file__).parents[3]), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def wait_for(url: str, status: int = 200) -> None:
    for _ in range(200):
        with contextlib.suppress(httpx.ConnectError):
            if httpx.get(url).status_code == status:
                return
        time.sleep(0.05)
    pytest.fail(f"nothing answers at {url}")


def test_serves_until_interrupted() -> None:
    process = started(SERVER, "serve", "--judge", "qs=one", "--judge", "runs/two", "--port", "0")
    assert process.stdout is not None
    try:
        announced = re.fullmatch(
            r"serving qs, two at (http://127\.0\.0\.1:\d+)\n", process.stdout.readline()
        )
        assert announced
        example = process.stdout.readline().removeprefix("try: ")
        assert example.startswith(f"curl -s {announced[1]}/judge ")
        assert httpx.get(f"{announced[1]}/health").json() == {"status": "ready"}
        cards = httpx.get(f"{announced[1]}/judges").json()["judges"]
        assert [card["name"] for card in cards] == ["qs", "two"]
        done = subprocess.run(example, shell=True, capture_output=True, text=True, check=True)
        assert '"label":"Correct"' in done.stdout
        assert '"judge":"one/hieval-qs"' in done.stdout
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_an_interrupt_while_judges_load_does_not_wait_for_them() -> None:
    slowly = "import time\nJudge.load = lambda source: time.sleep(300)\nfrom cli.main"
    script = SERVER.replace("from cli.main", slowly)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = started(script, "serve", "--judge", "qs=one", "--port", str(port))
    try:
        wait_for(f"http://127.0.0.1:{port}/health/ready", 503)
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert output == ""  # it says "serving" only when it answers
    assert f"INFO loading qs; http://127.0.0.1:{port} answers 503 until then" in errors
    assert "Traceback" not in errors


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
    script = SERVER.replace("= FakeJudge", "= lambda name: FakeJudge(name, ('truthful-pair',))")
    process = started(script, "serve", "--judge", "pair=one", "--port", "0")
    assert process.stdout is not None
    try:
        process.stdout.readline()
        example = process.stdout.readline().removeprefix("try: ")
        done = subprocess.run(example, shell=True, capture_output=True, text=True, check=True)
        assert '"status":"scored"' in done.stdout
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::"])
def test_other_hosts_are_refused(host: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--judge", "embedded", "--host", host])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: --host '{host}': other machines could call")


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
