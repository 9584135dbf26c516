"""Files that appear whole, and kept work: what survives a kill, a full disk, a second process."""

import errno
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from cli.shared.verdicts import write_verdicts
from clients.kept_verdicts import KeptVerdict, partial_file
from data_prep.tables.source import open_table
from judging import Verdict
from judging.errors import CustosError
from judging.files.atomic import atomic_path, atomic_write, whole_folder, write_text
from judging.files.kept_work import KeptFile, Origin, append_lines, locked
from judging.progress import in_batches
from tests.judging.files.squares import Square, origin, squares


@pytest.fixture
def file(tmp_path: Path) -> KeptFile[Square]:
    return KeptFile(tmp_path / "squares.partial", Square)


class Worker:
    """Squares numbers, and remembers in which batches."""

    def __init__(self, stop_after: int = 10**9, failing: Sequence[int] = ()) -> None:
        self.batches: list[list[int]] = []
        self.stop_after = stop_after
        self.failing = failing

    def __call__(self, numbers: Sequence[int]) -> Iterator[Square]:
        if len(self.batches) == self.stop_after:
            raise KeyboardInterrupt
        self.batches.append(list(numbers))
        for line in squares(numbers):
            yield line.model_copy(update={"square": -1}) if line.row in self.failing else line


def fill(
    file: KeptFile[Square],
    worker: Callable[[Sequence[int]], Iterator[Square]],
    numbers: Sequence[int],
    key: Callable[[int], Origin] = origin,
    retry_failed: bool = False,
) -> list[int]:
    filling = file.fill(lambda: numbers, key, worker, batch=4, retry_failed=retry_failed)
    return list(filling)


def rows(file: KeptFile[Square]) -> list[int]:
    return [line.row for line in file.lines()]


@given(cut=st.integers(0, 300), garbage=st.binary(max_size=20))
def test_whatever_is_cut_off_or_torn_the_result_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, cut: int, garbage: bytes
) -> None:
    file = KeptFile(tmp_path_factory.mktemp("cut") / "squares.partial", Square)
    fill(file, Worker(), range(10))
    whole = file.path.read_bytes()
    file.path.write_bytes(left := whole[:cut] + garbage)
    worker = Worker()
    if left and cut < whole.index(b"\n") + 1:  # nobody knows whose it is
        with pytest.raises(CustosError):
            fill(file, worker, range(10))
        assert file.path.read_bytes() == left
        return
    fill(file, worker, range(10))
    assert file.path.read_bytes() == whole
    num_whole = whole[:cut].count(b"\n") // 4 * 4
    assert worker.batches == list(in_batches(range(num_whole, 10), 4)) or cut >= len(whole)


def test_a_damaged_line_ends_what_is_kept(file: KeptFile[Square]) -> None:
    fill(file, Worker(), range(10))
    lines = file.path.read_bytes().splitlines(keepends=True)
    file.path.write_bytes(b"".join([*lines[:5], b'{"row": \xff\n', *lines[6:]]))
    worker = Worker()
    fill(file, worker, range(10))
    assert worker.batches == [[4, 5, 6, 7], [8, 9]]


def test_results_on_something_else_are_never_thrown_away(file: KeptFile[Square]) -> None:
    fill(file, Worker(), range(10))
    before = file.path.read_bytes()
    worker = Worker()
    others: list[tuple[Sequence[int], Callable[[int], Origin], int]] = [
        ([0, 1, 2, 3, 4, 50, 6, 7, 8, 9], origin, 6),
        ([0, 2, 3, 4, 5, 6, 7, 8, 9], origin, 2),
        (range(9), origin, 10),
        (range(10), lambda number: (number, f"another judge on {number}"), 1),
    ]
    for numbers, key, line in others:
        with pytest.raises(CustosError, match=f"line {line} is a result on something else"):
            fill(file, worker, numbers, key)
        assert (file.path.read_bytes(), worker.batches) == (before, [])


FOREIGN = [
    *(b"my notes", b"a,b\n1,2\n", b'{"id": 1, "key": "mine"}\n', b"\0\1", b"[]"),
    *(b"{", b'{"key":', b'{"key":"mine","value":[1,2]}', b'{"key":"a","row":1}\n{"key":"b"}\n'),
]


@pytest.mark.parametrize("content", FOREIGN)
@pytest.mark.parametrize("is_link", [False, True])
def test_what_others_wrote_is_neither_changed_nor_deleted(
    file: KeptFile[Square], tmp_path: Path, content: bytes, is_link: bool
) -> None:
    theirs = tmp_path / "theirs" if is_link else file.path
    theirs.write_bytes(content)
    if is_link:
        file.path.symlink_to(theirs)
    worker = Worker()
    with pytest.raises(CustosError, match="squares.partial"):
        fill(file, worker, range(4))
    with pytest.raises(CustosError, match="squares.partial"):
        file.matching({origin(1)})
    file.remove_unless_failed()
    assert (theirs.read_bytes(), file.path.is_symlink()) == (content, is_link)
    assert worker.batches == []


def test_a_link_to_results_is_not_followed(file: KeptFile[Square], tmp_path: Path) -> None:
    other = KeptFile(tmp_path / "other.partial", Square)
    fill(other, Worker(), range(4))
    before = other.path.read_bytes()
    for target in (other.path, tmp_path / "nothing"):
        file.path.symlink_to(target)
        with pytest.raises(CustosError, match="squares.partial"):
            fill(file, Worker(), range(8))
        file.path.unlink()
    assert other.path.read_bytes() == before
    assert not (tmp_path / "nothing").exists()


def test_a_failed_line_is_done_again_when_its_row_has_changed(file: KeptFile[Square]) -> None:
    fill(file, Worker(failing=(5, 7)), range(10))
    worker = Worker()
    fill(file, worker, [0, 1, 2, 3, 4, 50, 6, 7, 8, 9])
    assert worker.batches == [[50]]
    assert rows(file) == [0, 1, 2, 3, 4, 50, 6, 7, 8, 9]


@pytest.mark.parametrize(("count", "again"), [(11, [8, 9, 10]), (10, None)])
def test_a_short_last_batch_is_kept_only_if_it_is_still_the_last(
    file: KeptFile[Square], count: int, again: list[int] | None
) -> None:
    fill(file, Worker(), range(10))
    worker = Worker()
    fill(file, worker, range(count))
    assert worker.batches == ([again] if again else [])
    assert rows(file) == list(range(count))


def test_failed_lines_are_done_again_only_when_asked(file: KeptFile[Square]) -> None:
    fill(file, Worker(failing=(1, 2, 9)), range(10))
    worker = Worker()
    fill(file, worker, range(10))
    assert worker.batches == []
    file.remove_unless_failed()
    assert file.path.exists()
    fill(file, worker, range(10), retry_failed=True)
    assert worker.batches == [[1, 2, 9]]
    assert [line.square for line in file.lines()] == [n * n for n in range(10)]
    file.remove_unless_failed()
    assert not file.path.exists()
    file.remove_unless_failed()


def test_lines_of_some_origins_are_found_in_any_order(file: KeptFile[Square]) -> None:
    assert list(file.matching({origin(1)})) == []
    file.append(squares([3, 1, 2]))
    with file.path.open("ab") as torn:
        torn.write(b'{"row": 7, "key": "squ')
    wanted = {origin(1), origin(3), (2, "another key"), origin(8)}
    assert [line.row for line in file.matching(wanted)] == [3, 1]
    file.append(squares([8]))
    assert rows(file) == [3, 1, 2, 8]


def test_a_full_disk_leaves_the_earlier_lines_whole(file: KeptFile[Square]) -> None:
    """A limit on the size of files stops the write in the middle of a line."""
    file.append(squares(range(4)))
    before = file.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
        with pytest.raises(OSError, match="File too large") as caught:
            file.append(squares(range(4, 8)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(file.path))
    assert file.path.read_bytes() == before
    file.append(squares(range(4, 8)))
    assert rows(file) == list(range(8))


def test_a_disk_that_loses_what_was_written_is_noticed(
    file: KeptFile[Square], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.append(squares(range(4)))
    before = file.path.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space left") as caught:
            append_lines(file.path, squares([4]))
    assert caught.value.filename == str(file.path)
    assert file.path.read_bytes() == before


def test_one_process_holds_the_lock_and_nothing_of_it_remains(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.partial"
    with locked(path), pytest.raises(CustosError, match="another run is writing it"), locked(path):
        pytest.fail("two hold one lock")
    with locked(path):
        pass
    assert list(path.parent.iterdir()) == []
    # What others wrote in the place of a lock stays; nor is a folder without files another run.
    lock = tmp_path / "a.partial.lock"
    lock.write_text("mine", encoding="utf-8")
    for unlocked, message in (
        (tmp_path / "a.partial", "a.partial.lock"),
        (Path("/proc/x.jsonl"), r"^/proc/x\.jsonl: no file can be made in /proc; name another"),
    ):
        with pytest.raises(CustosError, match=message), locked(unlocked):
            pytest.fail("it was taken for a lock")
    assert lock.read_text(encoding="utf-8") == "mine"


RUN = """
import sys, time
from pathlib import Path
from judging.files.kept_work import KeptFile, locked
from tests.judging.files.squares import Square, origin, squares

def slowly(numbers):
    time.sleep(0.01)
    return squares(numbers)

file = KeptFile(Path(sys.argv[1]), Square)
with locked(file.path):
    print("held", flush=True)
    sys.stdin.readline()
    for _ in file.fill(lambda: range(200), origin, slowly, batch=4):
        pass
"""


def start(program: str, path: Path) -> subprocess.Popen[str]:
    """Start a process that takes the lock, and goes on once it gets a line."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, str(path)]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.usefixtures("forking_python")
def test_runs_that_are_killed_at_any_moment_lose_nothing(file: KeptFile[Square]) -> None:
    random, num_kept = Random(0), 0
    for _ in range(4):
        process = start(RUN, file.path)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(random.uniform(0, 0.15))
        process.kill()
        process.communicate()
        whole = rows(file)
        assert whole == list(range(len(whole)))
        assert len(whole) >= num_kept // 4 * 4
        num_kept = len(whole)
    _, errors = start(RUN, file.path).communicate("\n", timeout=60)
    assert errors == ""
    assert [line.square for line in file.lines()] == [n * n for n in range(200)]


Events = list[tuple[str, str]]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Events:
    """What is synced, renamed and deleted; a temporary file goes by the name that it will get."""
    happened: Events = []

    def noting(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(target: Any, *others: Any, **options: Any) -> Any:
            path = os.readlink(f"/proc/self/fd/{target}") if what == "sync" else os.fspath(target)
            name = "folder" if Path(path) == tmp_path else Path(path).name
            happened.append((what, re.sub(r"^\.(.+)\.[^.]+$", r"\1", name)))
            return function(target, *others, **options)

        return wrapper

    for what, name in (("sync", "fsync"), ("rename", "replace"), ("delete", "unlink")):
        monkeypatch.setattr(os, name, noting(what, getattr(os, name)))
    monkeypatch.setattr(os, "rename", noting("rename", os.rename))
    return happened


def appears(name: str) -> Events:
    return [("sync", name), ("rename", name), ("sync", "folder")]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_says_who_may_read_a_file(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        with atomic_write(tmp_path / "verdicts") as file:
            file.write("what was asked and answered")
        with atomic_path(tmp_path / "weights") as partial:
            save_file({"a": torch.zeros(2)}, partial)
        with whole_folder(tmp_path / "model") as partial:
            save_file({"a": torch.zeros(2)}, partial / "weights")
    finally:
        os.umask(before)
    for name in ("verdicts", "weights", "model/weights"):
        assert (tmp_path / name).stat().st_mode & 0o777 == mode, name


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("before")
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "text") as file:
        file.write("half")
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
    assert (tmp_path / "text").read_text() == "before"


def test_all_files_of_a_folder_are_on_the_disk_before_it_appears(
    tmp_path: Path, events: Events
) -> None:
    with whole_folder(tmp_path / "checkpoint") as partial:
        (partial / "state").write_text("all")
    assert events == [("sync", "state"), *appears("checkpoint")]


def _writes(folder: Path) -> None:
    write_text(folder / "text", "x" * 1000)


def _copies(folder: Path) -> None:
    shutil.copyfile(__file__, folder / "copy")


def _saves(folder: Path) -> None:
    save_file({"a": torch.zeros(1000)}, folder / "weights.safetensors")


@pytest.mark.parametrize("write", [_writes, _copies, _saves])
def test_a_full_disk_leaves_the_earlier_folder_and_is_named_after_it(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    with whole_folder(tmp_path / "run") as partial:
        (partial / "earlier").touch()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(OSError) as caught, whole_folder(tmp_path / "run") as partial:  # noqa: PT011
            write(partial)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "run"))
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "earlier"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_verdicts_are_on_the_disk_before_the_partial_file_goes(
    tmp_path: Path, events: Events, name: str
) -> None:
    source, out = tmp_path / "rows.csv", tmp_path / name
    source.write_text("question,response\nq,a\n")
    kept = partial_file(out)
    verdict = Verdict(id="1", status="scored", label="Correct")
    kept.append([KeptVerdict(row=1, key="k", verdict=verdict)])
    assert events == appears(f"{name}.partial")
    kept.append([KeptVerdict(row=2, key="k", verdict=verdict)])
    assert events == [*appears(f"{name}.partial"), ("sync", f"{name}.partial")]
    events.clear()
    write_verdicts(out, open_table(source), kept)
    kept.remove_unless_failed()
    assert events == [*appears(name), ("delete", f"{name}.partial")]
