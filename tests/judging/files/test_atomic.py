"""Files that appear whole, and what is on the disk when."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from cli.shared.verdicts import write_verdicts
from clients.kept_verdicts import KeptVerdict, partial_file
from data_prep.tables.source import open_table
from judging import Verdict
from judging.files.atomic import atomic_path, atomic_write, whole_folder

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


def test_a_file_and_its_name_are_on_the_disk(tmp_path: Path, events: Events) -> None:
    with atomic_write(tmp_path / "text") as file:
        file.write("all")
    with atomic_path(tmp_path / "bytes") as partial:
        partial.write_bytes(b"all")
    assert events == [*appears("text"), *appears("bytes")]
    assert (tmp_path / "text").read_bytes() == (tmp_path / "bytes").read_bytes() == b"all"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_says_who_may_read_a_file(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        with atomic_write(tmp_path / "verdicts") as file:
            file.write("what was asked and answered")
        with atomic_path(tmp_path / "weights") as partial:
            save_file({"a": torch.zeros(2)}, partial)
    finally:
        os.umask(before)
    for name in ("verdicts", "weights"):
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


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.parquet"])
def test_verdicts_are_on_the_disk_before_the_partial_file_goes(
    tmp_path: Path, events: Events, name: str
) -> None:
    source, out = tmp_path / "rows.csv", tmp_path / name
    source.write_text("question,response\nq,a\n")
    kept = partial_file(out)
    verdict = Verdict(id="1", status="scored", label="Correct")
    kept.append([KeptVerdict(row=1, key="k", verdict=verdict)])
    assert events == [("sync", f"{name}.partial"), ("sync", "folder")]
    events.clear()
    write_verdicts(out, open_table(source), kept)
    kept.remove_unless_failed()
    assert events == [*appears(name), ("delete", f"{name}.partial")]
