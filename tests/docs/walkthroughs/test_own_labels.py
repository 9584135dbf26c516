"""The page about one's own labels works as it stands: its commands are run on its twenty rows."""

from __future__ import annotations

import csv
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.docs.markdown_pages import DOCS, blocks
from tests.docs.walkthroughs.shell import environment, run

pytestmark = pytest.mark.usefixtures("forking_python")

PAGE = DOCS / "own-labels.md"
ROWS = 20
START_S = 300


@pytest.mark.slow
def test_every_command_of_the_page(tmp_path: Path) -> None:
    follow(tmp_path, lambda text: text)
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

    follow(tmp_path, shrink)


def follow(folder: Path, change: Callable[[str], str]) -> None:
    """Save the files of the page and run its commands, in their order, in an empty folder."""
    port = free_port()
    with running_services() as services:
        for block in blocks(PAGE):
            text = change(block.text).replace(":8000", f":{port}")
            if block.title:
                (folder / block.title).write_text(text, encoding="utf-8")
            elif block.language == "sh" and text.startswith("custos serve"):
                services.append(start(f"exec {text.strip()} --port {port}", folder))
                wait_until_ready(services[-1], port)
            elif block.language == "sh":
                output = run(text, folder)
                if text.startswith("curl"):
                    (folder / "answer.json").write_text(output, encoding="utf-8")
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


def start(text: str, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "service.log").open("wb") as log:
        return subprocess.Popen(
            ["bash", "-c", text], cwd=folder, env=environment(), stdout=log, stderr=log
        )


@contextmanager
def running_services() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Yield a list; stop the services that were put into it."""
    services: list[subprocess.Popen[bytes]] = []
    try:
        yield services
    finally:
        for service in services:
            service.send_signal(signal.SIGTERM)
            service.wait(timeout=60)


def wait_until_ready(service: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert service.poll() is None, "the service has ended"
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.3)
    pytest.fail("the service did not start")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
