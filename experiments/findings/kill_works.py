"""The three works that ``kill_log`` kills: their inputs, their commands, what shows progress.

The commands are named and imported in their processes only: nothing imports the command line.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from judging.files.records import write_records
from judging.types import LabelledExample

ANSWER_SECONDS = 0.1
"""How long the server of ``bench respond`` thinks about an answer."""
TRAIN, GRADE, RESPOND = "stage 1", "custos grade", "custos bench respond"
SCREEN = "screen.log"
"""What a work printed to standard error, in its folder."""
ROWS, ITEMS = Path("rows.jsonl"), Path("items.json")


@dataclass(frozen=True)
class Work:
    """A command that can be killed; it is run in a folder that holds its inputs."""

    name: str
    program: str
    """Module and function that is called with the arguments, as their script does."""
    arguments: tuple[str, ...]
    output: str
    """What it is for: a file, which must appear equal to the last byte."""
    kept: str
    """Pattern of the files that hold what it has done."""
    data: Path
    """Its input, which another run changes."""
    written: int
    """Bytes of a file that it cannot do with, to stand for a full disk."""

    def progress(self, folder: Path) -> list[Path]:
        """Return the files that hold what was done so far, the newest last."""
        return sorted(folder.glob(self.kept))


def run_work(work: Work, folder: Path, most_bytes: int | None) -> None:
    """Run a work in this process, which ends with its exit status.

    Args:
        work: The work.
        folder: Folder to run it in; it gets a file of what the work prints to standard error.
        most_bytes: Largest file that it may write, if there is a limit.
    """
    os.chdir(folder)
    screen = os.open(SCREEN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(screen, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    module, _, name = work.program.partition(":")
    sys.argv = [module, *work.arguments]
    getattr(import_module(module), name)(list(work.arguments))


def examples(count: int, start: int) -> list[LabelledExample]:
    """Return sums with right and wrong results."""
    rows = []
    for number in range(start, start + count):
        draw = random.Random(number)
        first, second, is_right = draw.randrange(90), draw.randrange(90), number % 2 == 0
        given = first + second + (0 if is_right else draw.randint(1, 9))
        rows.append(
            LabelledExample(
                id=str(number),
                question=f"What is {first} + {second}?",
                references=(str(first + second),),
                reference_mode="any",
                responses=(f"It is {given}.",),
                label="Correct" if is_right else "Wrong",
            )
        )
    return rows


def prepare(name: str, folder: Path, size: int, backbone: str) -> None:
    """Write the inputs of a work.

    Args:
        name: Work.
        folder: Folder that it will run in.
        size: How much there is to do, in rows.
        backbone: Backbone of the training run.
    """
    folder.mkdir(parents=True)
    if name == TRAIN:
        sizes = {"train": size, "val": 16, "cal": 60}
        for number, (split, count) in enumerate(sizes.items()):
            path = folder / (ROWS if split == "train" else f"{split}.jsonl")
            write_records(path, examples(count, number * 100_000))
        (folder / "recipe.yaml").write_text(yaml.safe_dump(_recipe(backbone)), encoding="utf-8")
    elif name == GRADE:
        write_records(folder / ROWS, [example.request() for example in examples(size, 900_000)])
    else:
        (folder / ITEMS).write_text(json.dumps(_items(size)), encoding="utf-8")


def _recipe(backbone: str) -> dict[str, Any]:
    return {
        "backbone": backbone,
        "data": {
            **{"train": [str(ROWS)], "val": "val.jsonl", "cal": "cal.jsonl"},
            "allow_overlap": True,
        },
        "adapter": {"r": 4, "alpha": 8, "dropout": 0.1},
        "optim": {"lr": 0.002, "batch_size": 4, "epochs": 1, "token_budget": 2048},
        "run": {
            **{"output": "run", "precision": "fp32", "trackers": [], "log_every": 5},
            **{"save_every": 5, "eval_every": 25, "select": "last"},
        },
    }


def _items(count: int) -> dict[str, Any]:
    return {
        str(number): {
            "figure_id": number,
            "figure_path": f"{number}.png",
            "subq_idx": 1,
            "q_type": "desc",
            "q_relation": "inexist",
            "question": f"How high is bar {number}?",
            "ref_answer": "There is no such bar.",
        }
        for number in range(count)
    }


def works(judge: Path, url: str) -> dict[str, Work]:
    """Return the works by name.

    Args:
        judge: Run folder of the judge that grades.
        url: Address of the server that answers.
    """
    grade = ("grade", "--judge", str(judge), "--in", str(ROWS), "--batch", "8")
    respond = ("bench", "respond", "charthal", "--items", str(ITEMS), "--no-image")
    server = ("--base-url", url, "--model", "made-up", "--concurrency", "2")
    train = ("--config", "recipe.yaml")
    return {
        TRAIN: Work(
            name=TRAIN,
            program="train.hieval_stage1:main",
            arguments=train,
            output="run/adapter_model.safetensors",
            kept="run/checkpoint-*/adapter*",
            data=ROWS,
            written=4096,
        ),
        GRADE: Work(
            name=GRADE,
            program="cli.main:app",
            arguments=(*grade, "--out", "out.jsonl"),
            output="out.jsonl",
            kept="out.jsonl.partial",
            data=ROWS,
            written=8192,
        ),
        RESPOND: Work(
            name=RESPOND,
            program="cli.main:app",
            arguments=(*respond, *server, "--out", "out.json"),
            output="out.json",
            kept="out.json.answers.jsonl",
            data=ITEMS,
            written=4096,
        ),
    }


def change_data(work: Work, folder: Path) -> None:
    """Change the first row of the input of a work."""
    path = folder / work.data
    text = path.read_text(encoding="utf-8")
    old = "How high" if work.name == RESPOND else "What is"
    path.write_text(text.replace(old, "How much is", 1), encoding="utf-8")


class _Answerer(BaseHTTPRequestHandler):
    """Answers a chat request with a digest of its question, after a while."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(ANSWER_SECONDS)
        digest = hashlib.sha256(json.dumps(json.loads(body)["messages"]).encode()).hexdigest()
        message = {"role": "assistant", "content": f"Bar {digest[:8]}"}
        reply = {
            **{"id": "1", "object": "chat.completion", "created": 0, "model": "made-up"},
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients that were killed are the point here."""


@contextmanager
def answering() -> Iterator[str]:
    """Run a chat server in this process and yield its address."""
    with _Server(("127.0.0.1", 0), _Answerer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join(10)
