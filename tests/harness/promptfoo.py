"""promptfoo: its model-graded assertions by their own prompts, and our assertion, in ``eval``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import yaml

from tests.harness.program import ADDRESS, OWN_PAGE, Outcome, Row, arguments, blocks, cases, emit

PROGRAM = Path(sys.prefix) / "node_modules" / ".bin" / "promptfoo"
PROVIDER = """
module.exports = class {
  id() { return 'canned'; }
  async callApi(prompt, context) {
    return { output: context.vars.response.replaceAll('{ {', '{{') };
  }
};
"""
"""A model under test whose answers are given."""
VALUES = {
    "llm-rubric": "The answer to '{{question}}' is '{{reference}}'.",
    "factuality": "{{reference}}",
    "model-graded-closedqa": "The answer is '{{reference}}'.",
    "g-eval": "The answer means the same as '{{reference}}'.",
}
FAILED = re.compile(r"API (?:call )?error|Could not|No output|malformed|Traceback|Error", re.I)
"""What promptfoo writes where it has no verdict; to it that is a failed test."""


def evaluate(folder: Path, way: str, asserts: Any) -> None:
    """Run an evaluation of all cases, and print what promptfoo concluded."""
    tests = [
        {
            "vars": {
                "question": case.question,
                "reference": case.reference,
                # Templates in variables are filled in by promptfoo; those of answers are to stay.
                "response": case.response.replace("{{", "{ {"),
            }
        }
        for case in cases()
    ]
    config = {
        "prompts": ["{{question}}"],
        "providers": ["file://canned.cjs"],
        "tests": tests,
        **asserts,
    }
    (folder / "canned.cjs").write_text(PROVIDER)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    start = time.perf_counter()
    options = ("-c", "config.yaml", "-o", "out.json", "--no-cache", "--no-table", "-j", "1")
    done = subprocess.run(
        [PROGRAM, "eval", *options, "--no-progress-bar"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PROMPTFOO_PYTHON": sys.executable,
            "PROMPTFOO_CONFIG_DIR": str(folder / "home"),
        },
    )
    seconds = (time.perf_counter() - start) / len(cases())
    if not (folder / "out.json").is_file():
        raise RuntimeError(done.stdout + done.stderr)
    results = json.loads((folder / "out.json").read_text())["results"]["results"]
    for case, result in zip(
        cases(), sorted(results, key=lambda each: each["testIdx"]), strict=True
    ):
        graded = result.get("gradingResult") or {}
        reason = str(graded.get("reason") or result.get("error"))
        emit(
            Row(way, case.name, _outcome(result["success"], graded, reason), reason[:300], seconds)
        )
    (folder / "out.json").unlink()


def _outcome(success: bool, graded: Any, reason: str) -> Outcome:
    if success:
        return "pass"
    if FAILED.search(reason):
        return "error"
    return "partial" if graded.get("score") == 0.5 else "fail"


def main() -> None:
    url, prompts = arguments()
    folder = Path(mkdtemp())
    [script], [settings] = blocks("promptfoo"), blocks("promptfoo", "yaml")
    [own] = blocks("promptfoo", "yaml", OWN_PAGE)
    (folder / "judged.py").write_text(script.replace(ADDRESS, url))
    evaluate(folder, "glue", yaml.safe_load(settings))
    for way, name in prompts.items():
        settings = own.replace(ADDRESS, url).replace("custos/promptfoo-rubric", name)
        default = yaml.safe_load(settings)["defaultTest"]
        default["assert"] = [{"type": way, "value": VALUES[way]}]
        evaluate(folder, way, {"defaultTest": default})


main()
