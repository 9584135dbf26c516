"""The page about one's own labels works as it stands: its commands are run on its twenty rows."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from tests import forks
from tests.docs.commands_in_text import commands_in
from tests.docs.markdown_pages import DOCS, blocks
from tests.docs.shell import environment, run, run_forked
from tests.serve.sockets import wait_until

PAGE = DOCS / "own-labels.md"
ROWS = 20
START_S = 300
SERVING = re.compile(r"^serving .* at (http://\S+)$", re.MULTILINE)


@pytest.mark.slow
def test_every_command_of_the_page(tmp_path: Path) -> None:
    follow(tmp_path, lambda text: text, run, service)
    verdict = json.loads((tmp_path / "answer.json").read_text(encoding="utf-8"))
    assert verdict["label"] == "Correct"


def test_every_command_of_the_page_on_a_tiny_model(small: str, tmp_path: Path) -> None:
    """As it stands, but for the model and for the judge that the training starts from."""

    def shrink(text: str) -> str:
        fresh = f"custos train hieval-qs backbone={small} adapter.init=null"
        text = text.replace("custos train hieval-qs", fresh)
        return text.replace("--judge embedded-qs", f"--judge {small}").replace(
            "custos eval embedded-qs", f"custos eval {small}"
        )

    follow(tmp_path, shrink, run_forked, forked_service)


Run = Callable[[str, Path], str]
Service = Callable[[str, Path], AbstractContextManager[str]]


def follow(folder: Path, change: Callable[[str], str], run_custos: Run, service: Service) -> None:
    """Save the files of the page and run its commands, in their order, in an empty folder.

    Args:
        folder: The folder.
        change: Changes a block of the page.
        run_custos: Runs the commands of a block.
        service: Runs a command that serves, on any port; yields its address.
    """
    address = ""
    with ExitStack() as services:
        for block in blocks(PAGE):
            text = change(block.text).replace("http://127.0.0.1:8000", address or "not served yet")
            if block.title:
                (folder / block.title).write_text(text, encoding="utf-8")
            elif block.language == "sh" and text.startswith("custos serve"):
                address = services.enter_context(service(f"{text.strip()} --port 0", folder))
            elif block.language == "sh" and text.startswith("curl"):
                (folder / "answer.json").write_text(run(text, folder), encoding="utf-8")
            elif block.language == "sh":
                run_custos(text, folder)
    check(folder)


def check(folder: Path) -> None:
    splits = folder / "runs" / "mine" / "data"
    assert sum(count_lines(path) for path in splits.glob("*.jsonl")) == ROWS
    card = (folder / "runs/mine/README.md").read_text(encoding="utf-8")
    assert "held-out" in card
    assert (folder / "runs/before/report.html").is_file()
    assert (folder / "runs/before/disagreements.csv").is_file()
    answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    assert answer["status"] == "scored"
    for name in ("verdicts.csv", "served.csv"):
        with (folder / name).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["status"] for row in rows] == ["scored"] * ROWS
        assert list(rows[0])[:5] == ["question", "gold", "model_answer", "model", "human_label"]


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@contextmanager
def service(text: str, folder: Path) -> Iterator[str]:
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {text}"], cwd=folder, env=environment(), stdout=log, stderr=log
        )
    try:
        wait_until(lambda: bool(SERVING.search(printed(folder))), START_S)
        yield SERVING.findall(printed(folder))[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(20)


def printed(folder: Path) -> str:
    return (folder / "service.log").read_text(encoding="utf-8")


@contextmanager
def forked_service(text: str, folder: Path) -> Iterator[str]:
    [(_, *arguments)] = commands_in(text)
    with forks.forked(
        forks.custos, *arguments, folder=folder, environment=environment()
    ) as process:
        yield process.wait_for(SERVING, START_S)[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
