"""``custos grade`` while one call on its files fails: nothing is lost, nothing is graded twice."""

import errno
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path

import pytest
from typer.main import get_command

from cli.main import app
from tests.cli.grade.made_up import failing_on_rome, many
from tests.cli.made_up import write_lines
from tests.failing_files import FailingFiles
from tests.serve.made_up import FakeJudge

ROWS = many(10)
BATCHES = [["1", "2", "3", "4"], ["5", "6", "7", "8"], ["9", "10"]]
FAILED = ["1", "4", "7", "10"]
OLD = {
    ".jsonl": b'{"row":1,"status":"judge_error"}\n',
    ".csv": b"status,needs_review,judge_name,rubric\n",
}
"""Outputs of an earlier run, by their ending."""
OLD_REVIEW = b"label,judge_label,reason\n"
COMMAND = get_command(app)
FAULTS = {
    errno.EIO: ".",
    errno.ENOSPC: r"open\((w|a)|open .*\.|write|fsync|truncate|close|replace|chmod",
}
"""Calls that fail with an error, as patterns."""


@dataclass
class Ended:
    """A run that has ended: its status, its lines of errors, and the batches that were graded."""

    status: int
    errors: list[str]
    batches: list[list[str]]


class Grading:
    """Runs of the command in one folder.

    Args:
        folder: The folder; made here, with outputs of an earlier run.
    """

    def __init__(self, folder: Path, judge: FakeJudge, capsys: pytest.CaptureFixture[str]) -> None:
        folder.mkdir()
        self.folder = folder
        self.source = folder / "in.jsonl"
        self.outputs = [folder / "out.jsonl", folder / "out.csv"]
        write_lines(self.source, ROWS)
        for output in self.outputs:
            output.write_bytes(OLD[output.suffix])
        self._judge = judge
        self._capsys = capsys

    def run(self, *options: str, files: FailingFiles | None = None) -> Ended:
        out, table = map(str, self.outputs)
        arguments = ["grade", "--judge", "fake", "--in", str(self.source), "--out", out]
        arguments += ["--csv", table, "--batch", "4", *options]
        self._judge.batches.clear()
        with (files or FailingFiles(self.folder)).failing():
            status = COMMAND.main(arguments, prog_name="custos", standalone_mode=False)
        return Ended(status or 0, self.error_lines(), list(self._judge.batches))

    def error_lines(self) -> list[str]:
        """What a command has printed that begins with ``error:``."""
        lines = self._capsys.readouterr().err.splitlines()
        return [line for line in lines if line.startswith("error: ")]

    @property
    def written(self) -> list[bytes]:
        return [output.read_bytes() for output in self.outputs]

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


Start = Callable[[], Grading]


@pytest.fixture
def start(judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Start:
    numbers = count()
    return lambda: Grading(tmp_path / str(next(numbers)), judge, capsys)


def check_every_fault(
    start: Start, error: int, batches: list[list[str]], *options: str
) -> Counter[str]:
    """Let each call of a run fail, and run the command again without a fault.

    Args:
        start: Makes a folder in which the command was not run, or was stopped.
        error: The error of the calls.
        batches: What the command grades there.
        options: Options of the command.

    Returns:
        How often each kind of call was failed.
    """
    before = (clean := start()).written
    calls = FailingFiles(clean.folder)
    assert clean.run(*options, files=calls) == Ended(0, [], batches)
    failed: Counter[str] = Counter()
    for number, call in enumerate(calls.calls):
        if not re.match(FAULTS[error], call):
            continue
        failed[call.split("(")[0].split()[0]] += 1
        grading = start()
        ended = grading.run(*options, files=FailingFiles(grading.folder, number, error))
        for content, *whole in zip(grading.written, before, clean.written, strict=True):
            assert content in whole, call
        if ended.status == 0:  # the lock could not be given back, or a file that has no name made
            assert "partial.lock" in call or call.endswith(" ."), call
            assert grading.written == clean.written, call
            continue
        assert ended.status == 2, call
        [line] = ended.errors
        file, _, reason = line.removeprefix("error: ").rpartition(": ")
        is_named = Path(file) == grading.folder / final_name(call)
        assert is_named or call.endswith(" .") and Path(file).parent == grading.folder, (call, line)
        assert reason.partition("; ")[0] == os.strerror(error), (call, line)
        again = grading.run(*options)
        assert (again.status, again.errors) == (0, []), call
        assert grading.written == clean.written, call
        assert grading.names == ["in.jsonl", "out.csv", "out.jsonl"], call
        graded = ended.batches + again.batches
        assert [batch for batch, _ in groupby(graded)] == batches, call
        assert len(graded) <= len(batches) + 1, f"{call}: more was graded again than one batch"
    return failed


def final_name(call: str) -> str:
    """Return the file of a call; for a temporary file, what it becomes."""
    name = call.rpartition(" ")[2]
    return name.strip(".").rpartition(".")[0] if name.startswith(".") else name


@pytest.mark.parametrize("error", FAULTS)
def test_whichever_call_fails_the_next_run_ends_as_if_none_had(start: Start, error: int) -> None:
    failed = check_every_fault(start, error, BATCHES)
    assert failed["write"] >= 5 and failed["fsync"] >= 6 and failed["replace"] == 3, failed


@pytest.mark.parametrize("error", FAULTS)
def test_whichever_call_fails_while_failed_rows_are_graded_again(
    start: Start, judge: FakeJudge, error: int
) -> None:
    graded = start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "verdict_on", failing_on_rome(judge))
        assert graded.run().status == 1

    def with_failed_rows() -> Grading:
        grading = start()
        shutil.copytree(graded.folder, grading.folder, dirs_exist_ok=True)
        return grading

    failed = check_every_fault(with_failed_rows, error, [FAILED], "--retry-failed")
    assert failed["replace"] == 3, failed


def test_whichever_call_fails_a_review_file_is_the_earlier_or_the_new_one(start: Start) -> None:
    grading = start()
    assert grading.run().status == 0
    verdicts, source, out = grading.outputs[0], grading.source, grading.folder / "review.csv"
    arguments = ["review", str(verdicts), "--in", str(source), "--csv", str(out)]

    def review(files: FailingFiles) -> tuple[int, list[str]]:
        with files.failing():
            status = COMMAND.main(arguments, prog_name="custos", standalone_mode=False)
        return status or 0, grading.error_lines()

    files = FailingFiles(grading.folder)
    out.write_bytes(OLD_REVIEW)
    assert review(files) == (0, [])
    whole, names = out.read_bytes(), grading.names
    for number, call in enumerate(files.calls):
        out.write_bytes(OLD_REVIEW)
        status, [line] = review(FailingFiles(grading.folder, number, errno.ENOSPC))
        assert (status, f": {os.strerror(errno.ENOSPC)}; " in line) == (2, True), (call, line)
        assert str(grading.folder) in line, call
        assert out.read_bytes() in (OLD_REVIEW, whole), call
        assert review(FailingFiles(grading.folder)) == (0, []), call
        assert (out.read_bytes(), grading.names) == (whole, names), call
