"""The house rules on imports: which folder may know which, no cycles, no effects."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOM = "custos.integrations"
TOOLS = {"deepeval", "inspect_ai", "lighteval", "mlflow", "ragas"}
"""Evaluation tools that a module in ``custos.integrations`` imports, where they are installed."""

ALLOWED = {
    "judging": set(),
    "losses": set(),
    "clients": {"judging"},
    "data_prep": {"judging", "clients"},
    "evaluation": {"judging"},
    "train": {"judging", "losses", "data_prep", "evaluation"},
    "benchmarks": {"judging", "clients", "data_prep", "evaluation"},
    "experiments": {
        *("judging", "losses", "clients", "data_prep", "evaluation"),
        *("train", "benchmarks"),
    },
    "serve": {"judging", "losses", "clients", "data_prep", "evaluation", "benchmarks"},
    "custos": {"judging", "clients"},
    "cli": {
        *("judging", "losses", "clients", "data_prep", "evaluation"),
        *("train", "benchmarks", "serve"),
    },
}  # fmt: skip

FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ALLOWED
    for path in sorted((ROOT / folder).rglob("*.py"))
}


Import = ast.Import | ast.ImportFrom


def imports(tree: ast.AST, is_run: bool = True) -> Iterator[tuple[Import, bool]]:
    """Import statements under a node, and whether they run when the module is imported.

    Those in functions do not, and those for types.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Import):
            yield node, is_run
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
                isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
            )
            yield from imports(node, is_run and not is_later)


def names_of(statement: Import) -> list[str]:
    """Names of the modules that an import statement asks for."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    assert statement.level == 0, f"relative import: {ast.unparse(statement)}"
    source = statement.module or ""
    # What is imported may be a module of a package or a name in a module.
    named = [f"{source}.{alias.name}" for alias in statement.names]
    return [name if name in FILES else source for name in named]


@cache
def imports_of(module: str) -> list[tuple[Import, bool]]:
    return list(imports(ast.parse(FILES[module].read_text(encoding="utf-8"))))


@cache
def imported(module: str) -> frozenset[str]:
    """Names of all modules that a module imports: for types and inside functions too."""
    return frozenset(name for statement, _ in imports_of(module) for name in names_of(statement))


def test_the_walk_sees_every_folder() -> None:
    assert {module.partition(".")[0] for module in FILES} == set(ALLOWED)
    assert "judging.tasks.base" in FILES


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_follow_the_table(folder: str) -> None:
    forbidden = {*ALLOWED, "tests"} - ALLOWED[folder] - {folder}
    crossed = sorted(
        f"{module} imports {name}"
        for module in FILES
        if module.partition(".")[0] == folder
        for name in imported(module)
        if name.partition(".")[0] in forbidden
    )
    assert crossed == []


def test_glue_imports_its_own_tool_and_no_other() -> None:
    for module in FILES:
        if module.startswith(f"{ROOM}."):
            names = {name.partition(".")[0] for name in imported(module)}
            assert names & TOOLS <= {module.rpartition(".")[2]}, module


def test_the_table_itself_has_no_cycle() -> None:
    assert set(TopologicalSorter(ALLOWED).static_order()) == set(ALLOWED)


def packages_of(module: str) -> Iterator[str]:
    """Names of the packages that Python imports on its way to a module."""
    parts = module.split(".")
    yield from (".".join(parts[:depth]) for depth in range(1, len(parts)))


def import_graph() -> dict[str, set[str]]:
    """For every module, all that it imports: for types and inside functions too.

    A package on the way to what it imports is imported with it, unless the module is inside.
    """
    graph: dict[str, set[str]] = {}
    for module in FILES:
        names = set(imported(module) & FILES.keys())
        packages = {package for name in names for package in packages_of(name) if package in FILES}
        graph[module] = (names | packages - set(packages_of(module))) - {module}
    return graph


def test_no_module_imports_itself_through_others() -> None:
    graph = import_graph()
    assert {"judging.errors", "judging.types"} <= graph["judging.files.records"]
    assert "serve.chat" in graph["serve.app"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


# Libraries may do as they please and are imported first; what our modules add is compared.
WATCH = """
import importlib, logging, os, pathlib, random, signal, sys, threading, warnings

names, libraries = sys.argv[1].split(), sys.argv[2]
exec(libraries)
import numpy, torch

def state():
    return {
        "environment": dict(os.environ),
        "folder": sorted(map(str, pathlib.Path.cwd().rglob("*"))),
        "working directory": os.getcwd(),
        "search path": list(sys.path),
        "warning filters": list(warnings.filters),
        "log handlers": list(logging.getLogger().handlers),
        "log level": logging.getLogger().level,
        "threads": threading.active_count(),
        "signals": [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)],
        "random": [random.getstate(), str(numpy.random.get_state())],
        "torch random": torch.random.get_rng_state().tolist(),
        "torch threads": torch.get_num_threads(),
        "torch dtype": torch.get_default_dtype(),
        "torch gradients": torch.is_grad_enabled(),
    }

before = state()
for name in names:
    importlib.import_module(name)
after = state()
for key in before:
    if before[key] != after[key]:
        print(key, before[key], after[key])
"""


def without_tools() -> list[str]:
    """Modules that everyone can import."""
    return [module for module in FILES if module not in {f"{ROOM}.{tool}" for tool in TOOLS}]


def library_imports() -> str:
    """Every import of a third-party library that runs when our modules are imported."""
    ours = {*ALLOWED, *sys.stdlib_module_names}
    return "\n".join(
        sorted(
            {
                ast.unparse(statement)
                for module in without_tools()
                for statement, is_run in imports_of(module)
                if is_run and not {name.partition(".")[0] for name in names_of(statement)} & ours
            }
        )
    )


def test_importing_has_no_effects(tmp_path: Path) -> None:
    home = tmp_path / "home"
    work = tmp_path / "work"
    work.mkdir()
    script = [sys.executable, "-c", WATCH, " ".join(without_tools()), library_imports()]
    # The one setting that importing makes, since torch reads it when it is loaded, is given here.
    settings = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), **settings}
    done = subprocess.run(
        script,
        cwd=work,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert list(work.iterdir()) == []
    assert not home.exists()
