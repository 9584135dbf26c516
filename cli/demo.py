"""``custos demo``: what custos does, on one screen, in minutes, on a CPU.

Every step runs commands that a user could type, and shows them. A shipped judge grades three
answers. A judge is trained, tested and served. The error in an answer about a drawn chart is named.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import typer

from cli.shared.options import with_groups
from cli.shared.screen import in_columns
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.models.devices import num_cores

FOLDER = Path("runs/demo")
JUDGE = FOLDER / "judge"
LOG = FOLDER / "demo.log"
"""File that marks the folder of an earlier demo."""
READY_SECONDS = 180

MIDDLEMARCH = {
    "question": "Who wrote Middlemarch?",
    "references": ["George Eliot", "Mary Ann Evans"],
    "reference_mode": "any",
}
RESPONSES = (
    "It was written by Mary Ann Evans in 1871.",
    "Charlotte Bronte wrote it.",
    "I do not know.",
)
LIGHTHOUSE = {
    "question": "who built the lighthouse of Torvane",
    "references": ["Maren Oldigast", "M. Oldigast"],
    "reference_mode": "any",
    "response": "The lighthouse of Torvane was built by Joris Pellwin in 1874.",
}
GRADERS = {
    "zero_shot": "the same model, untrained",
    "containment": "rule: a reference occurs in the answer",
    "exact_match": "rule: the answer equals a reference",
    "majority_label": "rule: always the commoner label",
}
NEXT = """\
Everything is in runs/demo. What to do with your own answers:

  Write one line per answer to answers.jsonl:
    {"question": "...", "references": ["..."], "reference_mode": "any", "response": "..."}

  Grade them      custos grade --in answers.jsonl --out verdicts.jsonl
  Train on labels of your own: add "label": "Correct" or "Wrong" to the lines, then
                  custos train hieval-qs --train answers.jsonl --out runs/mine
  Serve           custos serve --judge mine=runs/mine

  custos judges lists the shipped judges, custos recipe list what can be trained."""


@dataclass(frozen=True)
class Plan:
    """Length and settings of the demo's training run."""

    minutes: int
    """Minutes of the whole demo on two cores."""
    training: int
    """Minutes of the training alone."""
    rows: int
    """Number of made answers, all splits together."""
    unseen: str
    """Words that say what the trained judge has seen of the answers that people judged."""
    overrides: tuple[str, ...] = ()
    """Keys of the recipe that differ."""
    note: tuple[str, ...] = ()
    """Lines that tell the user why they differ."""


FULL = Plan(minutes=8, training=7, rows=2800, unseen="it has seen none like them")
# A CPU without fast bfloat16 instructions computes in float32, which is slower. What it can train
# from nothing in a quarter of an hour is no judge, so there training goes on from a shipped one.
SHORT = Plan(
    minutes=9,
    training=5,
    rows=1200,
    unseen="the judge it started from was trained on other questions of this set",
    overrides=("adapter.init=embedded-qs", "optim.lr=5e-4"),
    note=(
        "This CPU has no fast bfloat16 instructions and computes in float32. So training goes",
        "on from the shipped judge embedded-qs instead of starting from nothing, on fewer rows.",
    ),
)


@with_groups
def demo(data: Path | None = None) -> None:
    """Show what custos does: grade, train, test and serve, in minutes, on a CPU.

    It writes to runs/demo, and replaces what an earlier demo wrote there.

    Example: custos demo

    Options:
        data: NQ.json of EVOUNA: also test the trained judge on answers that people judged. Default:
            no such test.
    """
    import httpx

    if data and not data.is_file():
        raise CustosError(f"--data '{data}': no such file")
    if FOLDER.exists() and not LOG.exists():
        raise CustosError(
            f"{FOLDER}: the folder holds files of yours that would be deleted; rename it, or start "
            "the demo in another folder"
        )
    plan = plan_for_this_cpu()
    typer.echo(
        "Three answers are graded, then a judge is trained, tested and served: "
        f"about {plan.minutes} minutes on two CPU cores."
    )
    shutil.rmtree(FOLDER, ignore_errors=True)
    screen = Screen(LOG, num_steps=7 if data else 6)
    typer.echo(f"Everything is written to {FOLDER}; warnings and details to {screen.log}.")
    grade_three_answers(screen)
    screen.step("Training data is made; its labels are true by construction, not given by people")
    sizes = ("--rows", str(plan.rows), "--val", "100", "--cal", "200", "--test", "300")
    out = FOLDER / "data"
    screen.run("custos", "prep", "synthetic", "--worlds", "open", *sizes, "--out", str(out))
    made = read_lines(out / "train.jsonl")
    screen.show(["", f"{len(made):,} answers about invented places and people. Two of them:"])
    for label in ("Correct", "Wrong"):
        row = next(row for row in made if row["label"] == label)
        accepted = " or ".join(row["references"])
        screen.show([f"{row['question']}  Accepted: {accepted}.", f"  {label}: {shown(row)}"])
    screen.step(f"A judge is trained on them and tested: about {plan.training} minutes")
    screen.show(plan.note)
    recipe = ("--config", "embedded/demo", *plan.overrides)
    launch = ("accelerate", "launch", "-m", "train.hieval_stage1")
    screen.run(*launch, *recipe, on_screen=True)
    screen.step("How good is it? The test answers are worded in forms that training never shows")
    report = json.loads((JUDGE / "report.json").read_text(encoding="utf-8"))
    screen.show(accuracy_table(report))
    screen.show(["", f"{report['n']} answers; details in {JUDGE / 'report.md'}"])
    if data:
        screen.step(f"The same judge on answers that people judged (EVOUNA); {plan.unseen}")
        split, out = FOLDER / "evouna", FOLDER / "evouna-report"
        screen.run("custos", "prep", "evouna", "--source", str(data), "--out", str(split))
        test = ("--data", str(split / "test.jsonl"), "--out", str(out), "--no-zero-shot")
        screen.run("custos", "eval", str(JUDGE), *test)
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        screen.show(accuracy_table(report))
    screen.step("It is served over HTTP and asked for a verdict")
    judges = ("--judge", f"mine={JUDGE}", "--judge", "embedded-ea")
    with screen.serving("custos", "serve", *judges, "--port", "0") as url:
        screen.show(f"$ curl -s {url}/judge -H 'Content-Type: application/json' -d \\")
        screen.show(f"    '{json.dumps(LIGHTHOUSE)}'")
        # No proxy of the environment: it cannot reach this machine.
        answer = httpx.post(f"{url}/judge", json=LIGHTHOUSE, timeout=READY_SECONDS, trust_env=False)
        verdict = answer.json()
        screen.show(["", f"{with_probabilities(verdict)}  {LIGHTHOUSE['response']}"])
        screen.step(
            "The shipped judge embedded-ea names the error in an answer about a drawn chart"
        )
        out = FOLDER / "drawn"
        drawing = ("--rows", "2", "--seed", "1", "--kind", "bar", "--out", str(out))
        screen.run("custos", "prep", "twins", *drawing)
        rows, verdicts = out / "twins.jsonl", out / "verdicts.jsonl"
        screen.run("custos", "grade", "--judge", url, "--in", str(rows), "--out", str(verdicts))
        drawn = read_lines(rows)
        screen.show(["", f"{drawn[0]['question']}  Answer: {', '.join(drawn[0]['references'])}."])
        screen.show(f"Response to both charts: {shown(drawn[0])}")
        for row, verdict in zip(drawn, read_lines(verdicts), strict=True):
            named = f"{verdict['label']}; {verdict['error_type']} ({verdict['confidence']:.0%})"
            screen.show(["", f"{out / row['images'][0]} ({row['metadata']['caption']})"])
            screen.show(f"  named {named}, true by construction: {row['label']}")
    typer.echo(f"\n{NEXT}")


def plan_for_this_cpu() -> Plan:
    """Choose the plan that this CPU can follow in a quarter of an hour."""
    import torch

    from judging.models.devices import computes_bfloat16

    return FULL if computes_bfloat16(torch.device("cpu")) else SHORT


def grade_three_answers(screen: Screen) -> None:
    """Grade three answers with a shipped judge and show its probabilities."""
    screen.step("A shipped judge grades three answers (the first run fetches a model of 98 MB)")
    rows, verdicts = FOLDER / "answers.jsonl", FOLDER / "verdicts.jsonl"
    lines = [json.dumps({**MIDDLEMARCH, "response": response}) for response in RESPONSES]
    write_text(rows, "\n".join(lines) + "\n")
    judge = ("--judge", "embedded-qs")
    screen.run("custos", "grade", *judge, "--in", str(rows), "--out", str(verdicts))
    accepted = " or ".join(MIDDLEMARCH["references"])
    screen.show(["", f"{MIDDLEMARCH['question']}  Accepted: {accepted}."])
    graded = zip(RESPONSES, read_lines(verdicts), strict=True)
    screen.show(in_columns([(with_probabilities(verdict), text) for text, verdict in graded]))


def read_lines(path: Path) -> list[Mapping[str, Any]]:
    """Read the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def shown(row: Mapping[str, Any]) -> str:
    """Quote a row's response on one line."""
    return f'"{" ".join(row["responses"][0].split())}"'


def with_probabilities(verdict: Mapping[str, Any]) -> str:
    """Write out a verdict's label and the probability of every label."""
    shares = ", ".join(f"{label} {p:.1%}" for label, p in verdict["probabilities"].items())
    return f"{verdict['label']:<7} ({shares})"


def accuracy_table(report: Mapping[str, Any]) -> Sequence[str]:
    """Write one line per grader of a report: accuracy and its 95 % interval."""
    beside = report["baselines"]
    measured = {"the trained judge": report["metrics"]}
    measured |= {text: beside[name] for name, text in GRADERS.items() if name in beside}
    rows = [("", "accuracy", "95 % interval")]
    for name, metrics in measured.items():
        accuracy = metrics["accuracy"]
        interval = f"{accuracy['low']:.3f} to {accuracy['high']:.3f}"
        rows.append((name, f"{accuracy['value']:.3f}", interval))
    return in_columns(rows)


PROGRAMS = {"custos": "cli", "accelerate": "accelerate.commands.accelerate_cli"}
"""Modules that run a program, which may not be on the path."""


class Screen:
    """Shows numbered steps and runs their commands.

    What the commands print goes to the file ``log``, which is replaced.
    """

    def __init__(self, log: Path, num_steps: int) -> None:
        self.log, self.num_steps = log, num_steps
        self._step, self._started = 0, time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")

    def step(self, title: str) -> None:
        """Begin the next step: show its number, its title and the time since the start."""
        self._step += 1
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        typer.secho(
            f"\n{self._step}/{self.num_steps}  {title}  [{minutes}:{seconds:02}]", bold=True
        )

    def show(self, lines: str | Iterable[str]) -> None:
        """Show one or more lines below the step's title."""
        for line in [lines] if isinstance(lines, str) else lines:
            typer.echo(f"     {line}".rstrip())

    def run(self, *command: str, on_screen: bool = False) -> None:
        """Show a command as a user would type it and run it to its end; its errors go to the log.

        Its standard output goes to the log too, or, if ``on_screen``, to the screen.
        """
        with self._open_log(command) as log:
            output = None if on_screen else log
            process = subprocess.run(
                _arguments(command), stdout=output, stderr=log, env=_environment(), check=False
            )
        if process.returncode:
            raise self._failed(command)

    @contextmanager
    def serving(self, *command: str) -> Iterator[str]:
        """Show a command and have it serve while the block runs; yield its address."""
        from train.launch.rehearsal import serving

        with (
            self._open_log(command) as log,
            serving(_arguments(command), log, _environment()) as (_, address),
        ):
            if address is None:
                raise self._failed(command)
            yield address

    @contextmanager
    def _open_log(self, command: tuple[str, ...]) -> Iterator[IO[bytes]]:
        text = f"$ {shlex.join(command)}"
        self.show(text)
        with self.log.open("ab", buffering=0) as log:
            log.write(f"{text}\n".encode())
            yield log

    def _failed(self, command: tuple[str, ...]) -> CustosError:
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "").removeprefix("error: ")
        return CustosError(f"'{shlex.join(command[:2])}' failed: {last}; all of it: {self.log}")


def _arguments(command: tuple[str, ...]) -> list[str]:
    program, *arguments = command
    return [sys.executable, "-m", PROGRAMS[program], *arguments]


def _environment() -> dict[str, str]:
    """Build an environment with every CPU core and no GPU, unless the user says otherwise.

    Access keys are left out: the tour asks its own service for verdicts.
    """
    # Without the first, accelerate launch would take one core.
    environment = {"OMP_NUM_THREADS": str(num_cores()), "CUDA_VISIBLE_DEVICES": "", **os.environ}
    environment.pop("CUSTOS_API_KEYS", None)
    return environment
