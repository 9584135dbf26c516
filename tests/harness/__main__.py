"""Build environments of evaluation tools, run their programs, and print what they concluded.

``python -m tests.harness [TOOL ...]`` runs the named tools, or all, against a ``custos serve`` of
its own, or against ``--url``, and writes the matrix into ``docs/harnesses-matrix.md``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import typer

from experiments.cost.service_load import CUSTOS, running
from serve.chat.contract import CHAT_CONTRACTS
from tests.harness.program import Row
from tests.harness.tools import ROOT, TOOLS, Tool

MATRIX = ROOT / "docs" / "harnesses-matrix.md"
CASES = ("right", "wrong", "partial", "empty", "hostile", "no verdict")
"""Columns of the matrix. The last is a right answer on which the service gives no verdict."""
HEAD = ("tool", "asked by", *CASES, "ms a call")
WORST = ("pass", "partial", "error", "fail")
"""Outcomes of wrong answers, the worst first."""
MARKS = {"pass": "pass", "partial": "0.5", "fail": "fail", "error": "error"}
SERVE = (*CUSTOS, "serve", "--port")
LIMIT_S = 900
START = """
import runpy, sys
sys.path.append(sys.argv.pop(1))  # last, so that custos is the installed package to the tool
runpy.run_module("tests.harness." + sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
SILENT = {
    **{"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true"},
    **{"MLFLOW_DISABLE_TELEMETRY": "true", "PROMPTFOO_DISABLE_TELEMETRY": "1"},
    **{"PROMPTFOO_DISABLE_UPDATE": "1", "HF_HUB_OFFLINE": "1", "LANGSMITH_TRACING": "false"},
}
"""Settings that keep tools from calling home."""

PAGE = """\
# What each tool concludes

Made by `make harness` on {date}, with `custos serve` and its shipped judges. Each tool grades:

- a right answer, a wrong one, one that gives half of what is asked for, and an empty one;
- two hostile ones, wrong, with the tool's own words and delimiters (the worse outcome is shown);
- the right one again, when the judge gives no verdict.

"glue" is [custos.integrations](integrations.md). Other names are the tool's own graders, asked by
their [own prompts](harnesses.md). "error" is a call that the tool reports as failed; it passes
nothing. A wrong answer that passes is the judge's own mistake: tests ask each tool with a judge
that makes none. The time is the median of one evaluation by the tool, on the machine that made this
page.

{table}
"""


def build(tool: Tool) -> None:
    """Make the environment of a tool, unless it is there in the version that is asked for."""
    ready = tool.environment / ".ready"
    if ready.is_file() and ready.read_text() == tool.installed:
        return
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", tool.environment], check=True)
    if tool.with_torch:
        [packages] = tool.environment.glob("lib/python3*/site-packages")
        ours = next(path for path in sys.path if path.endswith("site-packages"))
        (packages / "packages-of-custos.pth").write_text(ours + "\n")
    pip = (tool.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, *tool.installed.splitlines()], check=True)
    # Its entry points are read from its metadata.
    subprocess.run([*pip, "--no-deps", "--editable", ROOT], check=True)
    if tool.from_npm:
        npm = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix")
        package = f"{tool.name}@{tool.version}"
        subprocess.run([*npm, tool.environment, package], check=True)
    ready.write_text(tool.installed)
    size = sum(path.stat().st_size for path in tool.environment.rglob("*") if path.is_file())
    seconds = time.perf_counter() - start
    typer.echo(f"{tool.name}: built in {seconds:.0f} s, {size / 1e6:.0f} MB", err=True)


class _NoVerdict(BaseHTTPRequestHandler):
    """Answers of a service whose judge fails."""

    def do_POST(self) -> None:
        """Give no verdict to the client of custos, and refuse what chat clients ask."""
        size = int(self.headers["Content-Length"])
        num_requests = len(json.loads(self.rfile.read(size)).get("requests", ()))
        verdict = {"status": "judge_error", "message": "made to fail"}
        body = {"verdicts": [verdict] * num_requests} if num_requests else {"error": verdict}
        content = json.dumps(body).encode()
        self.send_response(200 if num_requests else 422)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@contextmanager
def failing() -> Iterator[str]:
    """Run a service that gives no verdicts; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _NoVerdict) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def conclusions(tool: Tool, url: str, *cases: str) -> list[Row]:
    """Run the program of a tool; return what it concluded.

    Of its own graders it asks those whose model names this version of custos knows.

    Args:
        tool: The tool.
        url: Address of the service.
        cases: Names of the cases to try, if not all.

    Raises:
        RuntimeError: If the program fails or prints nothing.
    """
    known = {f"custos/{contract.name}" for contract in CHAT_CONTRACTS}
    prompts = {way: name for way, name in tool.prompts.items() if name in known}
    done = subprocess.run(
        [tool.python, "-P", "-c", START, ROOT, tool.name, url, json.dumps(prompts), *cases],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **SILENT, "PYTHONPATH": ""},
        timeout=LIMIT_S,
    )
    lines = [line.removeprefix("ROW ") for line in done.stdout.splitlines() if "ROW {" in line]
    if done.returncode or not lines:
        raise RuntimeError(f"{tool.name}: {done.stderr[-2000:]}")
    return [Row(**json.loads(line)) for line in lines]


def matrix(found: Mapping[str, Sequence[Row]]) -> str:
    """Return a Markdown table with a row for every tool and way of asking."""
    lines = [HEAD, ("---",) * len(HEAD)]
    for name, rows in found.items():
        ways = defaultdict[str, list[Row]](list)
        for row in rows:
            ways[row.way].append(row)
        for way, its_rows in ways.items():
            model = TOOLS[name].prompts.get(way)
            asked = way if model is None else f"{way} (`{model}`)"
            cells = [cell(its_rows, case) for case in CASES]
            calls = sorted(row.seconds for row in its_rows if row.outcome != "error")
            middle = f"{1000 * calls[len(calls) // 2]:.0f}" if calls else "-"
            lines.append((f"{name} {TOOLS[name].version}", asked, *cells, middle))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(rows: Sequence[Row], case: str) -> str:
    """Return what the matrix says of a case: of several answers, the worst outcome."""
    outcomes = [row.outcome for row in rows if row.case == case]
    return MARKS[min(outcomes, key=WORST.index)] if outcomes else "-"


def main() -> None:
    """Run the tools of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.harness", description=__doc__)
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--url", help="ask this service instead of one of its own")
    given = parser.parse_args()
    tools = [TOOLS[name] for name in given.tools or TOOLS]
    for tool in tools:
        build(tool)
    found: dict[str, list[Row]] = {}
    with ExitStack() as servers:
        url, dead_url = given.url, servers.enter_context(failing())
        if url is None:
            url, _ = servers.enter_context(running(lambda port: [*SERVE, str(port)]))
        for tool in tools:
            failed = conclusions(tool, dead_url, "right")
            failed = [replace(row, case="no verdict") for row in failed]
            found[tool.name] = [*conclusions(tool, url), *failed]
            for row in found[tool.name]:
                detail = " ".join(row.detail.split())
                typer.echo(f"{tool.name} | {row.way} | {row.case} | {row.outcome} | {detail}")
    table = matrix(found)
    typer.echo(table)
    if not given.tools:
        date = datetime.date.today().isoformat()
        MATRIX.write_text(PAGE.format(date=date, table=table), encoding="utf-8")
    made_up = [
        f"{name}: {row.way}: {row.outcome} without a verdict"
        for name, rows in found.items()
        for row in rows
        if row.case == "no verdict" and row.outcome != "error"
    ]
    if made_up:
        sys.exit("\n".join(made_up))


if __name__ == "__main__":
    main()
