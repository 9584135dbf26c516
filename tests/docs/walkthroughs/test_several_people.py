"""The section on several people works as it stands: its program and command are run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.markdown_pages import DOCS, Block, blocks
from tests.docs.walkthroughs.shell import run

pytestmark = pytest.mark.usefixtures("forking_python")

PAGE = DOCS / "measure.md"
BY_CHANCE = "Against the shares of people"
"""Begins what follows from probabilities, whose last digits differ between processors."""


def section() -> tuple[Block, Block, Block]:
    """Return the program that makes the table, the commands, and what they print."""
    shown = blocks(PAGE)
    first = next(number for number, block in enumerate(shown) if block.title == "people.py")
    program, commands, printed = shown[first : first + 3]
    assert (commands.language, printed.language) == ("sh", "text")
    return program, commands, printed


def follow(folder: Path, judge: str) -> str:
    program, commands, _ = section()
    (folder / program.title).write_text(program.text, encoding="utf-8")
    return run(commands.text.replace("embedded-qs", judge), folder)


def test_the_section_on_a_tiny_model(small: str, tmp_path: Path) -> None:
    output = follow(tmp_path, small)
    _, _, printed = section()
    assert printed.text.splitlines()[0] in output, "the names of the columns"
    report = json.loads((tmp_path / "runs/people/report.json").read_text(encoding="utf-8"))
    people = report["annotators"]
    assert people["names"] == ["anna", "ben", "carla"]
    assert people["alternative"]["tested"] == 3
    alpha = people["alpha"]["nominal"]["value"]  # it does not depend on the judge
    assert f"alpha of people is {alpha:.3f} [" in printed.text
    ceiling = people["people"]["agreement"]["value"]
    assert f"agree on {ceiling:.3f} [" in printed.text


@pytest.mark.slow
def test_what_the_page_prints(tmp_path: Path) -> None:
    output = follow(tmp_path, "embedded-qs")
    _, _, printed = section()
    assert printed.text.partition(BY_CHANCE)[0] in output
