"""The map of the repository is that of the repository."""

import re
from pathlib import Path

from tests.docs.markdown_pages import DOCS, ROOT
from tests.test_imports import ALLOWED

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]


def rooms() -> set[str]:
    """Return every package, and every folder of modules directly in it."""
    folders: set[Path] = set()
    for package in ALLOWED:
        folders.add(ROOT / package)
        folders |= {path for path in (ROOT / package).iterdir() if any(path.glob("*.py"))}
        folders |= {path for path in (ROOT / package).iterdir() if any(path.glob("*/__init__.py"))}
    return {f"{folder.relative_to(ROOT).as_posix()}/" for folder in folders}


def test_every_room_is_on_the_map() -> None:
    listed = re.findall(r"`([\w/]+/)`", section("The packages and their rooms"))
    assert rooms() <= set(listed)


def test_no_room_is_on_the_map_twice() -> None:
    described = re.findall(r"^\| `([\w/]+/)`", section("The packages and their rooms"), re.M)
    assert len(described) == len(set(described)) > len(ALLOWED)


def test_the_table_of_imports_is_the_tested_one() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section("Which package may import which"), re.M)
    table = {package: set(re.findall(r"`(\w+)`", allowed)) for package, allowed in rows}
    table["cli"] = set(ALLOWED) - {"cli", "custos", "experiments"}
    assert table == ALLOWED
    assert "| `cli` | all but `custos` and `experiments` |" in PAGE


def test_glossary_is_in_alphabetical_order() -> None:
    words = re.findall(r"^\| ([^|]+) \|", section("Glossary"), re.M)[2:]
    assert words == sorted(words)
    assert len(words) >= 30
