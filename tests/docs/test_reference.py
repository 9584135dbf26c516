"""The pages: reference made from the code, links, map of rooms, files for clusters, errors."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from docs.hooks.commands import commands, commands_page, option_names
from docs.hooks.fields import fields_page
from docs.hooks.models import field_table
from docs.hooks.recipe_keys import recipe_keys_page
from docs.hooks.site import GENERATED, SOURCES, to_generated
from judging.tasks import task_names
from judging.types import JudgeRequest, LabelledExample, Pass, Verdict
from serve.app import ERRORS, create_app
from serve.queue.service import Service
from tests.docs.markdown_pages import (
    DOCS,
    PAGES,
    ROOT,
    SITE_PAGES,
    anchors,
    blocks,
    links,
    name_of,
)
from tests.serve.made_up import FakeJudge, row
from tests.test_imports import ALLOWED
from train.setup.recipe import find_recipe, recipe_names


def rows(page: str) -> Iterator[list[str]]:
    """Yield the cells of every row of the tables of a page."""
    for line in page.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.parametrize("page", [fields_page, recipe_keys_page])
def test_every_name_has_a_meaning(page: object) -> None:
    assert callable(page)
    without = [cells[0] for cells in rows(page()) if not cells[-1].strip("| ")]
    assert without == []


def test_every_command_and_option_is_listed() -> None:
    page = commands_page()
    for name, command in commands():
        _, _, section = page.partition(f"# {name}\n")
        section = section.partition("\n#")[0]
        missing = {option for option in option_names(command) if option not in section}
        assert missing <= {"--help"}, name


def test_examples_of_commands_stand_in_blocks() -> None:
    assert "Example:" not in commands_page()


def test_every_key_of_the_recipes_is_listed() -> None:
    names = {cells[0].strip("`") for cells in rows(recipe_keys_page())}
    for recipe in recipe_names():
        values = yaml.safe_load(find_recipe(recipe).read_text(encoding="utf-8"))
        for key, value in values.items():
            keys = {f"{key}.{inner}" for inner in value} if isinstance(value, dict) else {key}
            assert keys <= names, recipe


def test_every_field_and_task_is_listed() -> None:
    names = {cells[0].strip("`") for cells in rows(fields_page())}
    for model in (JudgeRequest, LabelledExample, Verdict, Pass):
        assert set(model.model_fields) <= names
    assert set(task_names()) <= names


def test_a_field_is_described_by_its_annotation_and_docstring() -> None:
    lines = field_table(JudgeRequest).splitlines()
    [row] = [line for line in lines if line.startswith("| `critique_tokens`")]
    assert row.startswith("| `critique_tokens` | whole number, ≥ 1, ≤ 2,048 | `512` | ")
    assert "`all`, `any`" in field_table(JudgeRequest)


GENERATED_FROM = {ROOT / source: DOCS / page for page, source in SOURCES.items()}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_anchors(page: Path) -> None:
    """Files are there without the site; the source of a generated page has that page's anchors."""
    broken = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        on_site = GENERATED_FROM.get(linked, linked)
        if not linked.exists() or (anchor and anchor not in anchors(on_site)):
            broken.append(target)
    assert broken == []


def test_the_site_leads_to_its_own_pages() -> None:
    text = (
        "[a](../judging/types.py#verdict) [b](../train/setup/recipe.py) [c](../judging/types.pyi)"
    )
    assert to_generated(text, "serving.md") == (
        "[a](reference/fields.md#verdict) [b](reference/recipes.md) [c](../judging/types.pyi)"
    )
    assert to_generated("[a](../../judging/types.py)", "reference/python.md") == "[a](fields.md)"
    for page in SITE_PAGES:
        text = page.read_text(encoding="utf-8")
        on_site = to_generated(text, page.relative_to(DOCS).as_posix())
        assert not re.search(r"\]\([./]*[\w/]+\.py\b", on_site), page
        assert not re.search(r"\]\(\.\./[A-Z]+\.md", on_site), page


def test_the_way_through_the_site_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pending = [yaml.safe_load(text)["nav"]]
    listed = set()
    while pending:
        entry = pending.pop()
        if isinstance(entry, str):
            listed.add(entry)
        else:
            pending += entry.values() if isinstance(entry, dict) else entry
    assert listed == {page.relative_to(DOCS).as_posix() for page in SITE_PAGES} | set(GENERATED)


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


SCALE_PAGE = DOCS / "scale.md"
FILES = {block.title: block.text for block in blocks(SCALE_PAGE)}
OPTIONS = option_names(dict(commands())["custos grade"])


def grade_options(words: list[str]) -> set[str]:
    start = words.index("custos")
    assert words[start + 1] == "grade"
    return {word for word in words[start:] if word.startswith("--")}


def test_slurm_starts_the_command_on_a_cluster() -> None:
    script = FILES["grade.slurm"]
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=20)
    words = shlex.split(script.replace("\\\n", " "), comments=True)
    assert {"--ray", "--in", "--out"} <= grade_options(words) <= OPTIONS


def test_kuberay_starts_the_command_on_workers_with_gpus() -> None:
    job: dict[str, Any] = yaml.safe_load(FILES["grade.yaml"])
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert {"--ray", "--in", "--out"} <= grade_options(shlex.split(job["spec"]["entrypoint"]))
    assert grade_options(shlex.split(job["spec"]["entrypoint"])) <= OPTIONS
    cluster = job["spec"]["rayClusterSpec"]
    [group] = cluster["workerGroupSpecs"]
    pods = [cluster["headGroupSpec"], group]
    images = {pod["template"]["spec"]["containers"][0]["image"] for pod in pods}
    assert len(images) == 1, "all machines have the same versions of packages"
    limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "1"


SERVING_PAGE = DOCS / "serving.md"


def test_the_error_on_the_page_is_what_the_service_answers() -> None:
    [shown] = [json.loads(block.text) for block in blocks(SERVING_PAGE) if block.language == "json"]
    body = row()
    body["refernces"] = body.pop("references")
    with TestClient(create_app(Service({"a": FakeJudge()}))) as client:
        assert client.post("/judge", json=body).json() == shown


def test_every_status_of_the_routes_is_explained() -> None:
    text = SERVING_PAGE.read_text(encoding="utf-8")
    section = text.partition("## When a call fails\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([\d, ]+) \|", section, re.M)
    assert set(ERRORS) <= {status for cell in cells for status in cell.split(", ")}
