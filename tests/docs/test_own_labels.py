"""The page about one's own labels works as it stands: its commands are run on its twenty rows."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.docs.markdown_pages import DOCS, Block, blocks
from tests.docs.shell import environment, run
from train.setup.recipe_files import find_recipe

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
        text = re.sub(r"^  init: embedded-qs.*\n", "", text, flags=re.M)
        text = re.sub(r"^backbone: embedded\b.*$", f"backbone: {small}", text, flags=re.M)
        return text.replace("custos eval embedded-qs", f"custos eval {small}")

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
                if text.startswith("custos recipe copy"):
                    recipe = folder / "mine.yaml"
                    recipe.write_text(change(recipe.read_text(encoding="utf-8")), encoding="utf-8")
                elif text.startswith("curl"):
                    (folder / "answer.json").write_text(output, encoding="utf-8")
    check(folder)


def check(folder: Path) -> None:
    manifest = json.loads((folder / "data/mine/manifest.json").read_text(encoding="utf-8"))
    assert sum(count_lines(path) for path in (folder / "data/mine").glob("*.jsonl")) == ROWS
    assert manifest["command"].startswith("custos prep table")
    card = (folder / "runs/mine/README.md").read_text(encoding="utf-8")
    assert "Measured on 4 held-out items" in card
    assert (folder / "runs/mine-report/report.md").is_file()
    answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    assert answer["status"] == "scored"
    verdicts = (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["status"] for line in verdicts] == ["scored"] * ROWS


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_the_table_of_splits_is_what_the_command_makes(tmp_path: Path) -> None:
    """The page says how many rows each file gets."""
    wanted: list[Block] = []
    for block in blocks(PAGE):
        wanted.append(block)
        if "custos prep table" in block.text:
            break
    for block in wanted:
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            run(block.text, tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in re.findall(r"^\| `(\w+\.jsonl)` \| (\d+) \|", text, re.M):
        assert count_lines(tmp_path / "data" / "mine" / name) == int(rows), name


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


def test_the_recipe_on_the_page_is_the_one_that_is_copied() -> None:
    [shown] = [block for block in blocks(PAGE) if block.language == "yaml"]
    assert yaml.safe_load(shown.text) == yaml.safe_load(find_recipe("embedded/mine").read_text())
