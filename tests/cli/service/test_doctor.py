"""``custos doctor`` against real services, ours and others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps

from typer.testing import CliRunner, Result

from cli.main import app
from judging import JudgeRequest, Verdict
from serve.chat.contract import CHAT_CONTRACTS
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.sockets import serving_judges


def examine(url: str, *options: str, **env: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "--url", url, *options], env=env)


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


def test_nobody_there() -> None:
    result = examine("http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "is 'custos serve' running there?" in result.stderr


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
