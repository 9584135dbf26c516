"""The house rules on rooms: each imports downward, and a file is as long as its thought."""

from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.test_imports import FILES, ROOT, imported

MOST_LINES = 500
SMALL = 90

PRODUCT = {module for module in FILES if not module.startswith("experiments")}
ONE_OF_MANY = {
    *("judging.tasks", "losses", "train.methods", "data_prep.sources", "benchmarks"),
    *("data_prep.construction.forms", "data_prep.construction.steps", "serve.chat.contracts"),
    "custos.integrations",
}
"""Rooms of files that stand side by side, each a whole one of its kind."""
STARTED = {"train", "custos", "cli"}
"""Rooms of files that people start or import: scripts, names for other programs, verbs."""


def room(module: str) -> str:
    return ".".join(FILES[module].relative_to(ROOT).parent.parts)


def lines(module: str) -> int:
    return len(FILES[module].read_text(encoding="utf-8").splitlines())


def is_started(module: str) -> bool:
    return module.split(".")[0] == "cli" or room(module) in STARTED


@pytest.fixture(scope="module")
def importers() -> dict[str, set[str]]:
    """Modules of the product that import each of them."""
    found = defaultdict[str, set[str]](set)
    for module in PRODUCT:
        for name in imported(module) & FILES.keys() - {module}:
            found[name].add(module)
    return found


def test_no_file_is_too_long() -> None:
    assert {module for module in FILES if lines(module) > MOST_LINES} == set()


def test_rooms_import_downward(importers: dict[str, set[str]]) -> None:
    below = defaultdict[str, set[str]](set)
    for module, users in importers.items():
        for user in users:
            if room(user) != room(module):
                below[room(user)].add(room(module))
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_a_small_file_with_one_importer_is_part_of_it(importers: dict[str, set[str]]) -> None:
    apart = {
        module: sorted(importers[module])
        for module in PRODUCT
        if len(importers[module]) == 1
        and lines(module) < SMALL
        and FILES[module].name != "__init__.py"
        and room(module) not in ONE_OF_MANY
        and not is_started(module)
    }
    assert apart == {}


def test_every_module_has_a_user(importers: dict[str, set[str]]) -> None:
    unused = {
        module
        for module in PRODUCT
        if not importers[module]
        and FILES[module].name not in ("__init__.py", "__main__.py")
        and room(module) not in ONE_OF_MANY
        and not is_started(module)
    }
    assert unused == set()
