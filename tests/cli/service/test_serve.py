"""``custos serve`` and ``custos doctor``."""

import logging
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from json import dumps
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from judging import JudgeRequest, Verdict
from serve.chat.contract import CHAT_CONTRACTS
from serve.server import bind
from tests.cuda_stand_in import with_gpus
from tests.forks import custos_with, forked
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving_judges


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


LOAD = "cli.shared.judges.EngineOptions.load_judge"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record the judges that each service loads, which know every task; then it ends."""
    loaded: list[dict[str, Any]] = []
    monkeypatch.setattr(LOAD, lambda _, name, **__: KnowingJudge(name))
    monkeypatch.setattr(import_module("serve.pages.routes"), "warm_up", lambda judge: None)
    monkeypatch.setattr(
        "serve.server.run", lambda app, service, listener, load, *_: loaded.append(load())
    )
    return loaded


def serve(*options: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert result.exit_code == 0, result.output


def refused_before_loading(monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    """Return the error of options that are refused before a judge is loaded."""
    monkeypatch.setattr(LOAD, lambda *_, **__: pytest.fail("loaded"))
    monkeypatch.setattr("serve.server.run", lambda app, service, listener, load, *_: load())
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_a_port_in_use_is_an_error_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bind("127.0.0.1", 0) as listener:
        port = str(listener.getsockname()[1])
        error = refused_before_loading(monkeypatch, "--judge", "embedded", "--port", port)
    assert f"error: cannot listen on 127.0.0.1 port {port}" in error
    assert "--port" in error


@pytest.mark.parametrize(
    ("judge", "model"),
    [
        ("qs=embedded-qs", "custos/nothing"),
        ("qs=embedded-qs", "custos/qa@other"),
        ("m=embedded", "gpt-5"),
        ("", "custos/nothing"),
    ],
)
def test_an_alias_of_nothing_is_told_before_anything_is_loaded(
    judge: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges = ("--judge", judge) if judge else ()
    error = refused_before_loading(monkeypatch, *judges, "--alias", f"gpt-4o={model}")
    assert f"--alias 'gpt-4o={model}'" in error


@pytest.mark.usefixtures("loaded")
def test_an_alias_that_no_judge_answers_is_told_once_they_are_loaded() -> None:
    """A trained judge writes no free text."""
    options = ("--judge", "qs=embedded-qs", "--alias", "gpt-4o=qs")
    result = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert result.exit_code == 2
    assert "--alias 'gpt-4o=qs'" in result.stderr


@pytest.mark.parametrize(
    "alias", ["gpt-4o=custos/qa", "gpt-4o=custos/qa@embedded-qs", "m=embedded"]
)
def test_an_alias_of_what_is_served_by_default_is_taken(
    alias: str, loaded: list[dict[str, Any]]
) -> None:
    """Also of the untrained judge, which is not loaded by name."""
    serve("--alias", alias)
    assert loaded


def test_sizes_and_waits_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "queue key-rate cache-mb connections-per-address deadline watchdog".split():
        error = refused_before_loading(monkeypatch, f"--{name}", "9" * 20)
        assert f"Invalid value for '--{name}'" in error


@pytest.mark.parametrize("port", ["99999", "taken"])
def test_a_wrong_address_of_the_operator_names_its_option(
    port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bind("127.0.0.1", 0) as listener:
        if port == "taken":
            port = str(listener.getsockname()[1])
        error = refused_before_loading(monkeypatch, "--metrics-address", f"127.0.0.1:{port}")
    assert "--metrics-address" in error
    assert "--port" not in error


@pytest.mark.parametrize(
    ("options", "allowed"), [([], set()), (["--allow-unmeasured", "criterion"], {"criterion"})]
)
def test_what_the_operator_allows_holds_for_named_judges_and_for_the_untrained_one(
    options: list[str], allowed: set[str], loaded: list[dict[str, Any]]
) -> None:
    serve(*options)
    [judges] = loaded
    assert "embedded" in judges
    assert all(set(judge.allowed) == allowed for judge in judges.values())
    assert ("criterion" in judges["embedded"].tasks) is bool(allowed)


@pytest.mark.usefixtures("loaded")
def test_a_model_server_is_given_up_before_those_who_wait_give_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Any] = []

    def load_judge(*settings: Any, **patience: Any) -> FakeJudge:
        given.append((settings[0].deadline, patience))
        return FakeJudge()

    monkeypatch.setattr(LOAD, load_judge)
    server = "--engine openai --base-url http://127.0.0.1:9/v1 --judge m"
    serve(*server.split(), "--deadline", "60")
    [(deadline, patience)] = given
    tries = patience["tries"]
    assert tries * deadline + (tries - 1) * patience["longest_wait"] <= 60


def examine(url: str, *options: str, **env: str) -> Result:
    return CliRunner().invoke(app, ["doctor", url, *options], env=env)


def row(result: Result, model: str) -> list[str]:
    """Cells of a model's row."""
    [line] = [line for line in result.stdout.splitlines() if f"│ {model} " in line]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_all_that_is_served_is_well() -> None:
    with serving_judges({"knowing": KnowingJudge()}, aliases={"gpt-4o": "custos/qa"}) as address:
        result = examine(f"{address}/v1")
    assert result.exit_code == 0, result.output
    for name in CHAT_CONTRACTS.names():
        assert row(result, f"custos/{name}")[2] == "ok"
        assert row(result, f"custos/{name}")[4] == f"custos/{name}@knowing"
    _, harness, outcome, milliseconds, answered_by, reply = row(result, "gpt-4o")
    assert (harness, outcome, reply) == ("inspect_ai", "ok", "GRADE: I")
    assert answered_by == "custos/qa@knowing"
    assert float(milliseconds) > 0


def test_what_is_not_served_is_said_and_a_wanted_one_fails() -> None:
    with serving_judges(
        {"pairs": KnowingJudge("pairs", ("truthful-pair",))}, keys=("k3y-of-sixteen-characters",)
    ) as address:
        refused = examine(address)
        assert refused.exit_code != 0
        assert "needs an API key (401); set CUSTOS_KEY to one of the keys" in refused.stderr
        for wrong in ("another", "an other", "k3y-of-sixteen-characters\n"):
            refused = examine(address, CUSTOS_KEY=wrong)
            assert refused.exit_code != 0
            assert "API key" in refused.stderr
            assert wrong.strip() not in refused.stderr
        result = examine(address, CUSTOS_KEY="k3y-of-sixteen-characters")
        assert result.exit_code == 0
        assert row(result, "custos/truthful-pair")[2] == "ok"
        assert row(result, "custos/qa")[2] == "not served"
        assert (
            examine(address, "--key", "k3y-of-sixteen-characters", "--model", "custos/qa").exit_code
            == 1
        )


@contextmanager
def stranger(content: str, status: int = 200) -> Iterator[str]:
    """A server that calls itself custos/qa and always says the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(200, {"data": [{"id": "custos/qa"}]})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            choice = {"message": {"content": content}}
            error = {"message": content}
            self.answer(status, {"choices": [choice], "model": "gpt-4o", "error": error})

        def answer(self, code: int, body: object) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_another_judge_is_told_apart_by_its_verdicts_and_its_name() -> None:
    for content in ("GRADE: C", "GRADE: CI", "I would say grade: c", "downgrade: insufficient"):
        with stranger(content) as address:
            result = examine(address)
        assert result.exit_code == 1
        assert row(result, "custos/qa")[2] == "wrong"
        assert row(result, "custos/qa")[4:] == ["gpt-4o", content]
        assert "\nwrong: the reply has no verdict that the script can read" in result.stdout
    with stranger("busy", 429) as address:
        assert row(examine(address), "custos/qa")[2::3] == ["refused", "429 busy"]


def test_an_unknown_model_names_the_nearest() -> None:
    with serving_judges({"knowing": KnowingJudge()}) as address:
        result = examine(address, "--model", "qa")
        assert result.exit_code != 0
        assert "--model 'qa': no such model; did you mean custos/qa" in result.stderr


class ErringJudge(KnowingJudge):
    """Takes every response for wrong."""

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        return super().verdict_on(request.model_copy(update={"responses": ("No.",)}), confidence)


def test_a_judge_that_errs_is_a_healthy_installation() -> None:
    judges = {"erring": ErringJudge("erring", ("hieval-qs",)), "knowing": KnowingJudge()}
    with serving_judges(judges) as address:
        result = examine(address, "--model", "custos/qa@erring", "--model", "custos/simpleqa")
        assert result.exit_code == 0, result.output
        assert row(result, "custos/qa@erring")[2] == "erred"
        assert row(result, "custos/simpleqa")[2] == "ok"
        assert "\nerred: the script can read the verdict" in result.stdout
        assert examine(address, "--model", "custos/qa@erring").exit_code == 1  # nothing is right


def test_nobody_there() -> None:
    result = examine("--url", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "is 'custos serve' running there?" in result.stderr


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("gpus", [0, 1])
def test_the_log_names_the_gpu_of_the_judges(
    gpus: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_gpus(monkeypatch, gpus)
    with caplog.at_level(logging.INFO, "custos.serve"):
        serve("--judge", "m=mine")
    assert sum("NVIDIA Stand-in" in message for message in caplog.messages) == gpus
