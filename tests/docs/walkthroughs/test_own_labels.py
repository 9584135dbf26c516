"""Pages work as they stand: their commands and programs are run on what they show."""

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

from judging.models.backbones import Backbone
from tests.docs.markdown_pages import DOCS, ROOT, Block, blocks
from tests.docs.walkthroughs.shell import environment, run

pytestmark = pytest.mark.usefixtures("forking_python")

PAGE = DOCS / "own-labels.md"
ROWS = 20
START_S = 300


@pytest.mark.slow
def test_every_command_of_the_page(tmp_path: Path) -> None:
    follow(tmp_path, lambda text: text)
    assert (tmp_path / "runs/before/report.html").is_file()
    assert (tmp_path / "runs/before/disagreements.csv").is_file()
    verdict = json.loads((tmp_path / "answer.json").read_text(encoding="utf-8"))
    assert verdict["label"] == "Correct"


def test_every_command_of_the_page_on_a_tiny_model(small: str, tmp_path: Path) -> None:
    """As it stands, but for the model, the length of training, and the measurement before it."""

    def shrink(text: str) -> str:
        if text.startswith("custos eval"):
            return ""
        fresh = f"custos train hieval-qs backbone={small} adapter.init=null optim.max_steps=2"
        text = text.replace("custos train hieval-qs", fresh)
        return text.replace("--judge embedded-qs", f"--judge {small}")

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


PAIRS_PAGE = DOCS / "own-pairs.md"
PAIRS_ROWS = 6


@pytest.mark.slow
def test_every_command_of_the_page_pairs(small: str, tmp_path: Path) -> None:
    """As it stands, but for the model and for the judge that the training starts from."""
    fresh = f"custos train truthful-pure-label backbone={small} adapter.init=null"
    for block in blocks(PAIRS_PAGE):
        text = block.text.replace("embedded-pair", small)
        if block.title:
            (tmp_path / block.title).write_text(text, encoding="utf-8")
        elif block.language == "sh":
            run(text.replace("custos train truthful-pure-label", fresh), tmp_path)
    with (tmp_path / "verdicts.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["preferred"] for row in rows] == [
        *("first", "second", "first", "tie", "second", "first"),
    ]
    assert {row["status"] for row in rows} <= {"scored", "truncated"}
    report = json.loads((tmp_path / "runs/before/report.json").read_text(encoding="utf-8"))
    assert report["n"] == PAIRS_ROWS
    assert (tmp_path / "runs/mine/judge.json").is_file()


PEOPLE_PAGE = DOCS / "measure.md"
BY_CHANCE = "Against the shares of people"
"""Begins what follows from probabilities, whose last digits differ between processors."""


def section() -> tuple[Block, Block, Block]:
    """Return the program that makes the table, the commands, and what they print."""
    shown = blocks(PEOPLE_PAGE)
    first = next(number for number, block in enumerate(shown) if block.title == "people.py")
    program, commands, printed = shown[first : first + 3]
    assert (commands.language, printed.language) == ("sh", "text")
    return program, commands, printed


def follow_people(folder: Path, judge: str) -> str:
    program, commands, _ = section()
    (folder / program.title).write_text(program.text, encoding="utf-8")
    return run(commands.text.replace("embedded-qs", judge), folder)


def test_the_section_on_a_tiny_model(small: str, tmp_path: Path) -> None:
    output = follow_people(tmp_path, small)
    _, _, printed = section()
    assert printed.text.splitlines()[0] in output, "the names of the columns"
    report = json.loads((tmp_path / "runs/people/report.json").read_text(encoding="utf-8"))
    people = report["annotators"]
    assert people["names"] == ["anna", "ben", "carla"]
    assert people["alternative"]["tested"] == 3
    alpha = people["alpha"]["nominal"]["value"]  # it does not depend on the judge
    assert f"alpha of people is {alpha:.3f} [" in printed.text
    ceiling = people["people"]["agreement"]["value"]
    assert f"agree on {ceiling:.3f} [" in printed.text


@pytest.mark.slow
def test_what_the_page_prints(tmp_path: Path) -> None:
    output = follow_people(tmp_path, "embedded-qs")
    _, _, printed = section()
    assert printed.text.partition(BY_CHANCE)[0] in output


FILES = {
    block.title: block.text for block in blocks(DOCS / "benchmarks.md") if block.language == "json"
}


@pytest.mark.parametrize(("name", "count"), [("simplevqa", 2), ("truthfulvqa", 2), ("chartom", 4)])
def test_a_file_of_responses_makes_a_table(tmp_path: Path, name: str, count: int) -> None:
    """Two items of CHARTOM have a response each about the fact and one about other readers."""
    (tmp_path / f"{name}.json").write_text(FILES[f"{name}.json"], encoding="utf-8")
    judge = "" if name == "truthfulvqa" else "--judge rules"
    run(f"custos bench grade {name} --responses {name}.json {judge} --out g.jsonl", tmp_path)
    run(f"custos bench table {name} --graded g.jsonl --json table.json", tmp_path)
    assert json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))["n"] == count


def test_a_file_of_charthal_is_graded_by_a_judge(tmp_path: Path) -> None:
    (tmp_path / "charthal.json").write_text(FILES["charthal.json"], encoding="utf-8")
    said = run(
        "custos bench grade charthal --responses charthal.json --judge embedded --out g.jsonl",
        tmp_path,
    )
    assert "2 items graded, 0 without a label" in said


LOCAL_EXAMPLES = [
    block
    for page in (ROOT / "README.md", DOCS / "judge-files.md", DOCS / "reference" / "python.md")
    for block in blocks(page)
    if block.language == "python" and "http://" not in block.text
]


@pytest.mark.slow
def test_the_first_three_answers(embedded: Backbone, tmp_path: Path) -> None:
    page = blocks(DOCS / "index.md")
    [rows] = [block for block in page if block.title == "answers.jsonl"]
    (tmp_path / rows.title).write_text(rows.text, encoding="utf-8")
    [command] = [block.text for block in page if block.text.startswith("custos grade")]
    run(command, tmp_path)
    lines = (tmp_path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [json.loads(line) for line in lines]
    assert [verdict["label"] for verdict in verdicts] == ["Correct", "Wrong", "Wrong"]
    [shown] = [json.loads(block.text) for block in page if '"label_mass"' in block.text]
    assert shown.keys() <= verdicts[1].keys()
    assert verdicts[1]["confidence"] == pytest.approx(shown["confidence"], abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("block", LOCAL_EXAMPLES, ids=range(len(LOCAL_EXAMPLES)))
def test_python_examples(embedded: Backbone, block: Block, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
    assert "Correct" in run("python example.py", tmp_path)
