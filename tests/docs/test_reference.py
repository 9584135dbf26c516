"""The pages of the reference, which are made from the code, leave nothing out."""

from collections.abc import Iterator

import pytest
import yaml

from docs.hooks.commands import commands, commands_page, option_names
from docs.hooks.fields import fields_page
from docs.hooks.models import field_table
from docs.hooks.recipe_keys import recipe_keys_page
from judging.tasks import task_names
from judging.types import JudgeRequest, LabelledExample, Pass, Verdict
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
