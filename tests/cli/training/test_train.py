"""``custos train`` as a user runs it, on a tiny backbone."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from judging.files.records import read_records
from judging.types import LabelledExample, Verdict
from tests.train.made_up import example, examples, recipe, write_split

pytestmark = pytest.mark.usefixtures("forking_python")

REPOSITORY = Path(__file__).parents[3]


def _start(folder: Path, command: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cli", command, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(folder: Path, *arguments: str, command: str = "train") -> subprocess.CompletedProcess[str]:
    with _start(folder, command, *arguments) as process:
        output, errors = process.communicate(timeout=600)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def _fails(folder: Path, *arguments: str) -> str:
    """The one line on the screen of a command that fails before it starts a process."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, ["train", *arguments])
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def _write_rows(folder: Path, backbone: str) -> Path:
    """Write 40 labelled rows and a recipe that has no data of its own yet."""
    rows = [example(i, question=f"Which river {i // 2}?") for i in range(40)]
    write_split(folder / "rows.jsonl", rows)
    values = {**recipe(Path("runs/tiny"), backbone).model_dump(mode="json"), "method": "focal"}
    (folder / "tiny.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return folder


@pytest.fixture
def folder(small: str, tmp_path: Path) -> Path:
    return _write_rows(tmp_path, small)


@pytest.fixture(scope="module")
def trained(
    small: str, tmp_path_factory: pytest.TempPathFactory, _forking_programs: Path
) -> tuple[Path, str]:
    """A folder as such, with a run in ``mine``; and what that printed."""
    folder = _write_rows(tmp_path_factory.mktemp("trained"), small)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(_forking_programs / "python"))
        done = _run(folder, "tiny.yaml", "--train", "rows.jsonl", "--out", "mine", "optim.epochs=1")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_one_file_becomes_a_judge_with_a_report(trained: tuple[Path, str]) -> None:
    folder, printed = trained
    first, *_ = printed.splitlines()
    assert first.startswith("rows: ")
    assert first.endswith("(val, cal, test divided off train by question), in mine/data")
    manifest = json.loads((folder / "mine" / "data" / "manifest.json").read_text(encoding="utf-8"))
    rows = {name: part["rows"] for name, part in manifest["outputs"].items()}
    assert sum(rows.values()) == 40
    assert min(rows.values()) >= 4
    assert manifest["source"]["files"]["train"][0]["name"] == "rows.jsonl"
    questions = [_questions(folder / "mine" / "data" / name) for name in rows]
    assert sum(map(len, questions)) == len(set.union(*questions)), "no question in two splits"
    report = json.loads((folder / "mine" / "report.json").read_text(encoding="utf-8"))
    assert report["n"] == rows["test.jsonl"]
    assert report["command"].startswith("custos train tiny.yaml --train rows.jsonl")
    resolved = yaml.safe_load((folder / "mine" / "recipe.yaml").read_text(encoding="utf-8"))
    assert resolved["optim"]["epochs"] == 1

    more = write_split(folder / "other.jsonl", examples(30))
    error = _fails(folder, "tiny.yaml", "--train", more, "--out", "mine")
    assert "mine: holds a run on other rows; choose another --out" in error


def test_tables_with_mappings_of_their_own_are_added(folder: Path) -> None:
    lines = [f"River {i}?;{'green' if i % 3 else 'brown'};{'ja' if i % 3 else 'nein'}\n"
             for i in range(10)]  # fmt: skip
    (folder / "more.csv").write_text("".join(["frage;antwort;gut\n", *lines]), encoding="utf-8")
    columns = {"question": "frage", "response": "antwort", "label": "gut", "references": "antwort"}
    labels = {"ja": "Correct", "nein": "Wrong"}
    mapping = {"columns": columns, "labels": labels, "reference_mode": "any"}
    (folder / "more.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    tables = ("--train", "rows.jsonl", "--train", "more.csv:more.yaml")
    _fails_later(folder, "tiny.yaml", *tables)
    data = folder / "tiny.yaml-run" / "data"
    rows = [
        json.loads(line)
        for path in data.glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert len(rows) == 50
    given = {row["id"]: row["label"] for row in rows}
    assert [given[f"more-{n}"] for n in (1, 2, 3)] == ["Wrong", "Correct", "Correct"]


def test_a_run_goes_on_from_another_and_is_compared_with_it(trained: tuple[Path, str]) -> None:
    """The questions that were held out stay so, with corrected labels; the old judge stays."""
    folder, _ = trained
    old = [row for _, row in read_records(folder / "mine/data/test.jsonl", LabelledExample)]
    wrong = old[0].model_copy(update={"label": "Wrong" if old[0].label == "Correct" else "Correct"})
    write_split(
        folder / "more.jsonl", [wrong, *(example(i, question=f"Lake {i}?") for i in (1, 2))]
    )
    more = ("--train", "rows.jsonl", "--train", "more.jsonl", "--from", "mine", "--out", "new")
    done = _run(folder, *more)
    assert done.returncode == 3, done.stderr
    held = [row for _, row in read_records(folder / "new/data/test.jsonl", LabelledExample)]
    assert {row.question for row in held} == {row.question for row in old}
    assert wrong.label in {row.label for row in held if row.responses == wrong.responses}
    resolved = yaml.safe_load((folder / "new/recipe.yaml").read_text(encoding="utf-8"))
    assert (resolved["adapter"]["init"], resolved["optim"]["epochs"]) == ("mine", 1)
    decision = json.loads((folder / "new/comparison.json").read_text(encoding="utf-8"))
    assert (decision["judge"], decision["outcome"]) == ("mine", "not enough rows")
    assert decision["accuracy"]["n"] == len(held)
    before, after = (
        [verdict.label for _, verdict in read_records(folder / "new/compared" / name, Verdict)]
        for name in ("before/verdicts.jsonl", "after/verdicts.jsonl")
    )
    rates = [
        np.mean([label == row.label for label, row in zip(labels, held, strict=True)])
        for labels in (before, after)
    ]
    assert [decision["accuracy"][name]["value"] for name in ("second", "first")] == rates
    assert "judge to use: mine" in done.stdout
    lenient = _run(folder, *more, "--margin", "1")
    assert lenient.returncode == 0, lenient.stdout
    for options, words in (((*more[:6],), "--out"), ((*more[:6], "--out", "mine"), "--out")):
        assert words in _fails(folder, *options)
    assert "rows to go on with" in _fails(folder, "--from", "mine", "--out", "third")
    for key in ("data.test=null", "data.test=rows.jsonl"):  # before the run, and not at its end
        assert "--test" in _fails(folder, *more[:6], "--out", "third", key)
    assert not (folder / "third").exists()


def _questions(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {json.loads(line)["question"] for line in lines}


def test_a_bad_label_is_named_by_its_row(folder: Path) -> None:
    rows = [*examples(16), example(16, label="Corect"), *examples(3, 17)]
    write_split(folder / "bad.jsonl", rows)
    error = _fails(folder, "tiny.yaml", "--train", "bad.jsonl")
    assert error.startswith("error: bad.jsonl: 1 of 20 rows cannot be used; ")
    assert "'Corect' (1 row, the first is row 17) is not among them; add --labels 'C" in error
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("tiny.yaml --train none.jsonl", "none.jsonl: no such file"),
        ("hieval-qs", "hieval-qs: training for a task needs rows; give --train"),
        ("tiny.yaml --test rows.jsonl", "--test needs --train"),
        ("tinny --train rows.jsonl", "no such recipe"),
        ("tiny.yaml --random-weights adapter=5", "tiny.yaml: field 'adapter': expected a section"),
        *(
            (f"tiny.yaml --train rows.jsonl --out new {key}", words)
            for key, words in (
                ("run.seed=first", "override 'run.seed=first': field 'run.seed': "),
                ("run=5", "override 'run.output=\"new\"': 'run' is not a section"),
                ("data=5", "tiny.yaml: field 'data': expected a section of keys (got 5)"),
                ("optim.lrr=1", "'optim.lrr': no such key; the nearest is 'optim.lr'"),
                ("optim.batch_size=many", "many': field 'optim.batch_size': "),
            )
        ),
    ],
)
def test_mistakes_are_named_before_rows_are_written(
    folder: Path, arguments: str, words: str
) -> None:
    assert words in _fails(folder, *arguments.split())
    assert not (folder / "new").exists()


def test_an_error_in_two_processes_is_one_line(folder: Path) -> None:
    arguments = ("--train", "rows.jsonl", "--processes", "2", f"backbone={folder}/none")
    done = _run(folder, "tiny.yaml", *arguments)
    assert done.returncode == 2
    assert done.stdout.count("\n") == 2, "how the rows divide, and that some repeat"
    assert done.stderr.startswith(f"error: backbone '{folder}/none' cannot be loaded")
    assert done.stderr.count("\n") == 1, done.stderr


DRY_RUN = ("tiny.yaml", "--train", "rows.jsonl", "--dry-run", "1", "optim.batch_size=4")


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_dry_run_shows_each_part_once_and_leaves_nothing(
    processes: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(folder.iterdir())
    scratch = _scratch(folder, monkeypatch)
    done = _run(folder, *DRY_RUN, "--processes", processes)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("works with this recipe") == 1
    parts = [line.removeprefix("dry run: ") for line in done.stderr.splitlines()]
    assert parts[0] == "rows" and parts[-1] == "serving"
    assert len(set(parts)) == len(parts) == 9
    assert sorted(folder.iterdir()) == sorted([*before, scratch])
    assert not list(scratch.glob("custos-*"))


@pytest.mark.slow
def test_a_dry_run_that_is_stopped_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher ends its processes while the judge is served."""
    scratch = _scratch(folder, monkeypatch)
    process = _start(folder, "train", *DRY_RUN, "--processes", "2")
    assert process.stderr is not None
    while process.stderr.readline() not in ("dry run: serving\n", ""):
        pass
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert (process.returncode, "stopped at no checkpoint" in error) == (130, True)
    assert not list(scratch.glob("custos-*"))


def _scratch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files; torchrun leaves a folder of its own there."""
    scratch = folder / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    return scratch


def test_ctrl_c_says_where_the_same_command_goes_on(folder: Path) -> None:
    arguments = ("tiny.yaml", "--train", "rows.jsonl", "optim.epochs=10000", "run.save_every=5")
    process = _start(folder, "train", *arguments)
    deadline = time.monotonic() + 120
    while not any((folder / "runs" / "tiny").glob("checkpoint-*")):
        assert time.monotonic() < deadline, process.communicate()
        time.sleep(0.1)
    error = _interrupted(process)
    assert process.returncode == 130
    last = max(int(path.name[-6:]) for path in (folder / "runs" / "tiny").glob("checkpoint-*"))
    assert error.startswith(f"stopped at step {last}; the same command goes on from there: custos")
    assert "\n" not in error


def _interrupted(process: subprocess.Popen[str]) -> str:
    """Press Ctrl-C, and again if it was lost, as Python drops one that comes in a finaliser."""
    for seconds in (20, 20, 20):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=seconds)[1].strip()
    raise AssertionError("Ctrl-C does not stop it")


def test_rows_of_others_are_never_replaced(folder: Path) -> None:
    (folder / "data").mkdir()
    path = folder / "data" / "train.jsonl"
    path.write_bytes((folder / "rows.jsonl").read_bytes())
    error = _fails(folder, "tiny.yaml", "--train", "data/train.jsonl", "--out", ".")
    assert "data: holds files of yours; choose another --out" in error
    assert path.read_bytes() == (folder / "rows.jsonl").read_bytes()


def test_a_folder_of_other_files_is_left_alone(folder: Path) -> None:
    (folder / "own").mkdir()
    for name in ("README.md", ".hidden", "log.txt", "b.md", "c.md", "d.md"):
        (folder / "own" / name).write_text("mine")
    error = _fails(folder, "tiny.yaml", "--train", "rows.jsonl", "--out", "own")
    assert error == (
        "error: own: the folder holds files that are not of a run (README.md, b.md, c.md, ...); "
        "name a new folder with --out (run.output)\n"
    )
    assert len(list((folder / "own").iterdir())) == 6
    assert (folder / "own" / "README.md").read_text() == "mine"


def test_the_next_command_grades_the_same_table(folder: Path) -> None:
    table = "gold,my answer,question,verdict\n"
    table += "".join(
        f"green,{'green' if i % 3 else 'brown'},River {i}?,{'yes' if i % 3 else 'no'}\n"
        for i in range(30)
    )
    (folder / "my table.csv").write_text(table, encoding="utf-8")
    columns = ("references=gold", "response=my answer", "label=verdict")
    options = [part for column in columns for part in ("--map", column)]
    options += ["--labels", "yes=Correct,no=Wrong", "--reference-mode", "any"]
    size = ("optim.epochs=1", "optim.max_steps=50")
    done = _run(folder, "tiny.yaml", "--train", "my table.csv", *options, *size)
    assert done.returncode == 0, done.stderr
    assert "fewer than optim.max_steps=50" in done.stdout + done.stderr
    assert "too few to conclude" in done.stdout
    (following,) = (line for line in done.stdout.splitlines() if line.startswith("next: "))
    assert following.endswith(" --mapping runs/tiny/data/mapping.yaml --out verdicts.csv")
    command, *arguments = shlex.split(following.removeprefix("next: custos "))
    graded = _run(folder, *arguments, command=command)
    assert graded.returncode == 0, graded.stderr
    assert (folder / "verdicts.csv").read_text(encoding="utf-8").count("\n") == 31


def test_pairs_without_critiques_are_refused_before_they_are_divided(folder: Path) -> None:
    pairs = "".join(f"Q{i}?,x{i},y{i},A\n" for i in range(20))
    pairs = f"question,response_a,response_b,label\n{pairs}"
    (folder / "pairs.csv").write_text(pairs, encoding="utf-8")
    error = _fails(folder, "truthful-pair", "--train", "pairs.csv", "--out", "mine")
    assert error.startswith("error: pairs.csv: 20 of 20 rows have no critique, and 'truthful-pair'")
    assert (
        "--map critique=COLUMN, or train without critiques: 'custos train truthful-pure-l" in error
    )
    assert not (folder / "mine" / "data").exists()
    (folder / "mapping.yaml").write_text("task: truthful-pair", encoding="utf-8")
    table = ("--train", "pairs.csv", "--mapping", "mapping.yaml")
    error = _fails(folder, "truthful-pure-label", *table, "--out", "mine")
    assert "the mapping says task truthful-pair" in error
    for recipe_or_task, more in (
        ("truthful-pure-label", ()),
        ("embedded/pair_bradley_terry", ("--task", "truthful-pair")),
    ):
        _fails_later(folder, recipe_or_task, "--train", "pairs.csv", *more)


def _fails_later(folder: Path, *arguments: str) -> None:
    """Run a command whose table is read and divided, and that fails when it reads the rows."""
    out = f"{arguments[0].replace('/', '-')}-run"
    done = _run(folder, *arguments, "--out", out, "data.exclude_answerer=nobody")
    assert done.returncode == 2
    assert "'nobody' is none of" in done.stderr
