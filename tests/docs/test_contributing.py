"""The examples of CONTRIBUTING.md are true: each is put into its package, and its test is run."""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from benchmarks.framework.base import BENCHMARKS
from judging.registry import Registry
from judging.tasks.base import TASKS
from serve.chat.contract import CHAT_CONTRACTS
from tests.docs.markdown_pages import ROOT, Block, blocks

EXAMPLES = [block for block in blocks(ROOT / "CONTRIBUTING.md") if block.title]
CODE = [block for block in EXAMPLES if not block.title.startswith("tests/")]
TESTS = [block for block in EXAMPLES if block.title.startswith("tests/")]
REGISTRIES: tuple[Registry[Any], ...] = (TASKS, BENCHMARKS, CHAT_CONTRACTS)


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put every example into its package, and take it out again."""
    for registry in REGISTRIES:
        registry.names()  # declares what is there without examples
    for block in CODE:
        file = tmp_path / block.title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        package = import_module(".".join(file.parent.relative_to(tmp_path).parts))
        folders = [folder for folder in package.__path__ if folder != str(file.parent)]
        monkeypatch.setattr(package, "__path__", [*folders, str(file.parent)])
    invalidate_caches()
    before = [dict(registry.entries) for registry in REGISTRIES]
    yield
    for block in CODE:
        sys.modules.pop(block.title.removesuffix(".py").replace("/", "."), None)
    for registry, entries in zip(REGISTRIES, before, strict=True):
        registry.entries.clear()
        registry.entries.update(entries)


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("block", TESTS, ids=lambda block: Path(block.title).stem)
def test_example(block: Block, tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec(compile(block.text, block.title, "exec"), names)
    [test] = [value for name, value in names.items() if name.startswith("test_")]
    assert callable(test)
    arguments = {"tmp_path": tmp_path} if inspect.signature(test).parameters else {}
    test(**arguments)


def test_every_kind_of_addition_has_an_example_and_its_test() -> None:
    packages = {block.title.rpartition("/")[0] for block in CODE}
    assert packages == {
        *("judging/tasks", "losses", "train/methods", "benchmarks"),
        *("serve/chat/contracts", "data_prep/sources"),
    }
    assert len(TESTS) == len(CODE)
