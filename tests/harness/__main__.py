"""Build environments of evaluation tools, run their programs, and print what they concluded.

``python -m tests.harness [TOOL ...]`` runs the named tools, or all, against a ``custos serve`` of
its own, or against ``--url``, and writes the matrix into ``docs/harnesses-matrix.md``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness.program import Row
from tests.harness.tools import ROOT, TOOLS, Tool

MATRIX = ROOT / "docs" / "harnesses-matrix.md"
CASES = ("right", "wrong", "partial", "empty", "hostile")
HEAD = ("tool", "asked by", *CASES, "ms a call")
JUDGES = ("embedded-qs", "embedded-benchmarks")
MUST_NOT_PASS = {"wrong", "empty", "hostile"}
WORST = ("pass", "partial", "error", "fail")
"""Outcomes of wrong answers, the worst first."""
MARKS = {"pass": "pass", "partial": "0.5", "fail": "fail", "error": "error"}
LIMIT_S = 900
SILENT = {
    **{"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true"},
    **{"MLFLOW_DISABLE_TELEMETRY": "true", "PROMPTFOO_DISABLE_TELEMETRY": "1"},
    **{"PROMPTFOO_DISABLE_UPDATE": "1", "HF_HUB_OFFLINE": "1", "LANGSMITH_TRACING": "false"},
}
"""Settings that keep tools from calling home."""

PAGE = """\
# What each tool concludes

Made by `make harness` on {date}, with `custos serve` and the judges {judges}. Each tool grades a right answer, a wrong one, one that gives half
of what is asked for, an empty one, and two wrong ones that hold the tool's own words and delimiters (the worse of both is shown). "glue" is
[custos.integrations](integrations.md); other names are the tool's own graders, asked by their [own prompts](harnesses.md).
"error" is a call that the tool reports as failed: it is no verdict, and never a pass.

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
    print(f"{tool.name}: built in {time.perf_counter() - start:.0f} s", file=sys.stderr)


@contextmanager
def served() -> Iterator[str]:
    """Run ``custos serve`` with shipped judges; yield its address."""
    command = [Path(sys.executable).with_name("custos"), "serve", "--port", "0"]
    command += [part for judge in JUDGES for part in ("--judge", judge)]
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    ) as service:
        try:
            assert service.stdout is not None
            for line in service.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield found[0]
                    break
            else:
                raise RuntimeError("custos serve ended")
        finally:
            service.terminate()


def conclusions(tool: Tool, url: str, only: Sequence[str] = ()) -> list[Row]:
    """Run the program of a tool; return what it concluded.

    Args:
        tool: The tool.
        url: Address of the service.
        only: Graders of its own to ask, if not all.

    Raises:
        RuntimeError: If the program fails or prints nothing.
    """
    prompts = {way: name for way, name in tool.prompts.items() if not only or way in only}
    done = subprocess.run(
        [tool.python, "-m", f"tests.harness.{tool.name}", url, json.dumps(prompts)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **SILENT, "PYTHONPATH": str(ROOT)},
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
            cells = [_cell(its_rows, case) for case in CASES]
            calls = sorted(row.seconds for row in its_rows if row.outcome != "error")
            middle = f"{1000 * calls[len(calls) // 2]:.0f}" if calls else "-"
            lines.append((f"{name} {TOOLS[name].version}", asked, *cells, middle))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(rows: Sequence[Row], case: str) -> str:
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
    with served() if not given.url else _as_is(given.url) as url:
        for tool in tools:
            found[tool.name] = conclusions(tool, url)
            for row in found[tool.name]:
                print(tool.name, row.way, row.case, row.outcome, row.detail, sep=" | ")
    table = matrix(found)
    print(table)
    if not given.tools:
        date, judges = datetime.date.today().isoformat(), " and ".join(f"`{j}`" for j in JUDGES)
        MATRIX.write_text(PAGE.format(date=date, judges=judges, table=table), encoding="utf-8")
    passed = [
        f"{name}: {row.way}: a {row.case} answer passed"
        for name, rows in found.items()
        for row in rows
        if row.case in MUST_NOT_PASS and row.outcome == "pass"
    ]
    if passed:
        sys.exit("\n".join(passed))


@contextmanager
def _as_is(url: str) -> Iterator[str]:
    yield url


if __name__ == "__main__":
    main()
