"""Errors that every command must expect, each on one line with exit status 2."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
import torch
from typer.testing import CliRunner

from cli import grade
from cli.main import app
from train.launch.command_line import known_error

RUNNER = CliRunner()


def first_and_only_line(*command: str) -> str:
    result = RUNNER.invoke(app, command)
    assert result.exit_code == 2, result.exception
    [line] = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("realloc of size 4096000000 failed"),
        RuntimeError("unable to mmap 5 bytes from file <x>: Cannot allocate memory (12)"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 5 bytes."),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_too_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def read(*_: object) -> None:
        raise error

    monkeypatch.setattr(grade, "read_requests", read)
    source = tmp_path / "a.jsonl"
    source.write_text('{"question": "a"}\n', encoding="utf-8")
    line = first_and_only_line("grade", "--in", str(source), "--out", str(tmp_path / "b.jsonl"))
    assert line.startswith("error: out of memory")
    assert str(known_error(error)).startswith("out of memory")


def test_a_fault_of_ours_keeps_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise RuntimeError("something else")

    monkeypatch.setattr(grade, "read_requests", read)
    source = tmp_path / "a.jsonl"
    source.write_text('{"question": "a"}\n', encoding="utf-8")
    result = RUNNER.invoke(app, ["grade", "--in", str(source), "--out", str(tmp_path / "b.jsonl")])
    assert isinstance(result.exception, RuntimeError)


@pytest.mark.parametrize(
    "option", [("--out", "LOOP"), ("--out", "LOOP/b.jsonl"), ("--csv", "LOOP")]
)
def test_an_output_link_that_loops(tmp_path: Path, option: tuple[str, str]) -> None:
    loop, source = tmp_path / "loop.csv", tmp_path / "a.jsonl"
    loop.symlink_to(loop)
    source.write_text('{"question": "a"}\n', encoding="utf-8")
    name, value = option
    options = {"--out": str(tmp_path / "b.jsonl"), name: value.replace("LOOP", str(loop))}
    words = [word for pair in options.items() for word in pair]
    assert str(loop) in first_and_only_line("grade", "--in", str(source), *words)
    assert loop.is_symlink()


def test_recipes_that_yaml_cannot_read(tmp_path: Path) -> None:
    recipe = tmp_path / "a.yaml"
    for text in ("[" * 50_000, f"a: {'9' * 5000}", "a: 2024-13-45"):
        recipe.write_text(text, encoding="utf-8")
        assert str(recipe) in first_and_only_line("train", str(recipe))
