"""Every claim of the page on fidelity names a test that runs, so that it fails once it is false."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.markdown_pages import DOCS, ROOT

PAGE = DOCS / "fidelity.md"
NAMED = re.compile(r"`(tests/[\w/.-]+?)(?:::(\w+))?`")
SELDOM = {
    *("slow", "cuda", "vllm", "real_tokenizer", "needs_published", "browser", "ON_GPU", "MARKS"),
    *("skip", "skipif", "importorskip", "xfail"),
}
"""Marks and calls, and one fixture, of tests that most machines leave out or let fail."""
STATES = ("done", "stated", "open")

Claim = tuple[str, str]
"""A file or folder of tests, and the name of a test in it; an empty name stands for all of them."""


def points() -> list[tuple[str, str]]:
    """Return the rows of all tables of points and states: paper and point, and state."""
    found: list[tuple[str, str]] = []
    paper, is_table = "", False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        paper = line.removeprefix("## ") if line.startswith("## ") else paper
        point, _, state = line.strip("| ").partition(" | ")
        is_table = line.startswith("|") and (is_table or (point, state) == ("point", "state"))
        if is_table and not set(line) <= set("|-") and point != "point":
            found.append((f"{paper}: {point}", state))
    return found


POINTS = points()
CLAIMS: dict[str, list[Claim]] = {
    point: NAMED.findall(state) for point, state in POINTS if state.startswith("done")
}


@cache
def functions_of(path: Path) -> dict[str, bool]:
    """Return the tests of a file or folder; true for those that run on every machine."""
    if path.is_dir():
        return {
            f"{file.name}::{name}": runs
            for file in sorted(path.rglob("test_*.py"))
            for name, runs in functions_of(file).items()
        }
    tree = ast.parse(path.read_text(encoding="utf-8"))
    is_seldom = any(
        isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == "pytestmark" for each in node.targets)
        and SELDOM & set(_names(node.value))
        for node in tree.body
    )
    return {
        node.name: not is_seldom
        and not SELDOM & {name for each in node.decorator_list for name in _names(each)}
        and not SELDOM & {argument.arg for argument in node.args.args}
        and not SELDOM & {name for called in _calls(node) for name in _names(called)}
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _calls(test: ast.FunctionDef) -> list[ast.expr]:
    """Return what a test calls: ``pytest.skip`` leaves it out while it runs."""
    return [node.func for node in ast.walk(test) if isinstance(node, ast.Call)]


def _names(expression: ast.AST) -> Iterator[str]:
    """Yield the names in a decorator; marks of single cases of a parametrised test do not count."""
    if isinstance(expression, ast.Call) and "parametrize" in set(_names(expression.func)):
        return
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def running(claim: Claim) -> list[str]:
    """Return the tests of a claim that run on every machine."""
    path, name = claim
    tests = functions_of(ROOT / path)
    return [each for each, runs in tests.items() if runs and name in ("", each)]


def test_the_page_is_read() -> None:
    assert len(CLAIMS) > 60
    path = "tests/docs/test_fidelity.py"
    assert running((path, "test_the_page_is_read"))
    assert not running((path, "test_that_there_is_not"))
    assert not running(("tests/gpu/test_steps_cuda.py", ""))
    skips = "test_a_pin_is_one_version_for_the_oldest_python"
    assert not running(("tests/packaging/test_pins.py", skips))


def test_every_point_has_one_of_three_states() -> None:
    assert len(POINTS) == len(dict(POINTS)), "a point stands there twice"
    assert [point for point, state in POINTS if not re.match("|".join(STATES), state)] == []


def test_every_test_that_is_named_exists() -> None:
    missing = {
        f"{path}::{name}"
        for named in CLAIMS.values()
        for path, name in named
        if not (ROOT / path).exists() or (name and name not in functions_of(ROOT / path))
    }
    assert missing == set()


@pytest.mark.parametrize("point", CLAIMS)
def test_what_is_done_has_a_test_that_runs(point: str) -> None:
    assert any(running(claim) for claim in CLAIMS[point])
