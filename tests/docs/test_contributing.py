"""The examples of CONTRIBUTING.md are true: each is put into its place, and its tests are run."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from benchmarks.framework.base import BENCHMARKS
from judging.registry import Registry
from judging.tasks.base import TASKS
from judging.types import LabelledExample
from serve.chat.contract import CHAT_CONTRACTS
from tests.docs.markdown_pages import ROOT, Block, blocks
from tests.train.made_up import losses, take_step_without_waits, trainer
from train.methods import find_method, method_of
from train.methods.base import LossMethod
from train.setup.recipe import parse_recipe, read_values

EXAMPLES = [block for block in blocks(ROOT / "CONTRIBUTING.md") if block.title]
CHANGES = [block for block in EXAMPLES if block.language == "diff"]
USER_FILES = [block for block in EXAMPLES if block.language in ("csv", "yaml")]
PYTHON = [block for block in EXAMPLES if block.language == "python"]
TESTS = [block for block in PYTHON if block.title.startswith("tests/")]
CODE = [block for block in PYTHON if block not in TESTS]
TEST_OF_CHANGES = next(block for block in EXAMPLES[EXAMPLES.index(CHANGES[-1]) :] if block in TESTS)
REGISTRIES: tuple[Registry[Any], ...] = (TASKS, BENCHMARKS, CHAT_CONTRACTS)


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put every new file into its package, and take it out again."""
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
@pytest.mark.parametrize(
    "block",
    [block for block in TESTS if block is not TEST_OF_CHANGES],
    ids=lambda block: Path(block.title).stem,
)
def test_example(block: Block, request: pytest.FixtureRequest) -> None:
    names: dict[str, Any] = {}
    exec(compile(block.text, block.title, "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test(**{name: request.getfixturevalue(name) for name in inspect.signature(test).parameters})


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of the repository's code in which every change of the page is made."""
    for folder in ("cli", "clients", "data_prep", "evaluation", "judging"):
        shutil.copytree(ROOT / folder, tmp_path / folder, copy_function=os.symlink)
    for block in CHANGES:
        file = tmp_path / block.title
        text = file.read_text(encoding="utf-8")
        for hunk in block.text.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line.startswith(" "))
            assert text.count(old) == 1, f"{block.title} does not have once: {old}"
            text = text.replace(old, "".join(line[1:] for line in lines))
        file.unlink()
        file.write_text(text, encoding="utf-8")
    return tmp_path


FIELD_IN_EVERY_FORMAT = """
import json, sys
from dataclasses import replace
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from cli.shared.tables import TableOptions
from data_prep.tables.mapping import TableMapping, read_mapping, write_mapping
from data_prep.tables.reader import BadRow, parse_table
from judging.files.workbooks import write_workbook
from judging.types import JudgeRequest

folder = Path(sys.argv[1])
row = {"question": "Who?", "references": "Ann", "response": "No."}
rows = [row | {"refused": value} for value in (True, False, None)]
(folder / "a.jsonl").write_text("\\n".join(map(json.dumps, rows)))
(folder / "a.json").write_text(json.dumps(rows))
cells = [row | {"refused": text} for text in ("true", " False", "")]
lines = [",".join(row) + ",refused", *(",".join(cell.values()) for cell in cells)]
(folder / "a.csv").write_text("\\n".join(lines))
write_workbook(folder / "a.xlsx", [*row, "refused"], [list(r.values()) for r in rows])
pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
write_mapping(folder / "m.yaml", TableMapping(refused=True))
mappings = [TableMapping(), read_mapping(folder / "m.yaml"), TableOptions(refused=False).read()]

def told(parsed):
    return parsed.error.field if isinstance(parsed, BadRow) else parsed.refused

found = {
    file.suffix: [[told(parsed) for _, parsed in parse_table(file, JudgeRequest, mapping)]
                  for mapping in mappings]
    for file in sorted(folder.glob("a.*"))
}
(folder / "b.jsonl").write_text(json.dumps(row | {"refused": "perhaps"}))
wrong = [told(parsed) for _, parsed in parse_table(folder / "b.jsonl", JudgeRequest)]
words = [TableOptions(refused=value).words() for value in (True, False, None)]
print(json.dumps([found, wrong, words]))
"""


def test_a_field_is_read_as_it_is_annotated(changed: Path) -> None:
    code = f"{TEST_OF_CHANGES.text}\n{FIELD_IN_EVERY_FORMAT}\ntest_refused(folder)"
    command = [sys.executable, "-c", code, str(changed)]
    ended = subprocess.run(command, cwd=changed, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found, wrong, words = json.loads(ended.stdout)
    expected = [[True, False, False], [True, "refused", True], ["refused", False, False]]
    assert found == dict.fromkeys((".csv", ".json", ".jsonl", ".parquet", ".xlsx"), expected)
    assert wrong == ["refused"]
    assert words == [["--refused"], ["--no-refused"], []]


@pytest.mark.usefixtures("added")
def test_the_recipe_is_one_and_lowers_the_loss(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in USER_FILES:
        Path(block.title).write_text(block.text, encoding="utf-8")
    path = next(Path(block.title) for block in USER_FILES if block.language == "yaml")
    method = method_of(path, read_values(path))
    assert issubclass(method, LossMethod)
    recipe = parse_recipe(method.recipe_class, path, ["run.precision=fp32", "optim.lr=1e-3"])
    rows: list[LabelledExample] = list(method.read_rows(recipe).train)
    learner = trainer(recipe, small, rows, rows, method)
    learner.fit()
    assert len(losses(learner)) == recipe.optim.epochs  # each step is reported
    assert losses(learner)[-1] < 0.9 * losses(learner)[0]


@pytest.mark.usefixtures("added")
def test_the_method_does_not_wait_for_the_device(small: str, tmp_path: Path) -> None:
    [name] = [Path(block.title).stem for block in CODE if "train/methods/" in block.title]
    method = find_method(name)
    assert method and issubclass(method, LossMethod)
    take_step_without_waits(method, small, tmp_path)


def test_every_kind_of_addition_has_an_example_and_its_test() -> None:
    packages = {block.title.rpartition("/")[0] for block in CODE}
    assert packages == {
        *("judging/tasks", "losses", "train/methods", "benchmarks"),
        *("serve/chat/contracts", "data_prep/sources"),
    }
    assert len(TESTS) == len(CODE) + 1  # the changes have one test
