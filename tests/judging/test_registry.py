"""Entries are declared by the files of a package, and an added file is an added entry."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from judging.errors import CustosError
from judging.registry import Registry

FILE = """
from tests.judging.test_registry import ANIMALS, Animal

@ANIMALS.declare
def make() -> Animal:
    return Animal("{name}")
"""


class Animal:
    def __init__(self, name: str) -> None:
        self.name = name


ANIMALS = Registry[Animal]("animal", "made_up_zoo")


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "made_up_zoo"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in ("wolf", "bear"):
        (folder / f"{name}.py").write_text(FILE.format(name=name))
    for module in [name for name in sys.modules if name.startswith("made_up_zoo")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ANIMALS, "entries", {})
    return folder


def test_entries_come_from_the_files_of_the_package(zoo: Path) -> None:
    assert ANIMALS.names() == ("bear", "wolf")
    assert [animal.name for animal in ANIMALS] == ["bear", "wolf"]
    assert "bear" in ANIMALS and "cow" not in ANIMALS
    assert ANIMALS.get("wolf").name == "wolf"
    with pytest.raises(CustosError, match="^animal 'cow' is not one of bear, wolf$"):
        ANIMALS.get("cow")
    with pytest.raises(ValueError, match="animal 'wolf' is already declared"):
        ANIMALS.declare(lambda: Animal("wolf"))
