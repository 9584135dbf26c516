"""Recipe files by name: ``embedded/demo`` stands for ``recipes/embedded/demo.yaml`` here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from judging.errors import CustosError, FieldError
from judging.field_text import default_text, meaning, type_text
from judging.tasks import task_names
from train.setup.recipe import Section

RECIPES = Path(__file__).parents[2] / "recipes"
SUFFIX = ".yaml"
LAUNCHERS = ("accelerate",)
"""Folders of recipes that hold launchers' settings instead."""

RECIPES_OF_TASKS = "embedded/tasks"
"""Folder of the recipes that train for a task on a user's rows, each named after its task."""
RECIPE_OF_LABELS = "embedded/mine"
"""Recipe for the tasks that have none there."""


def recipe_names() -> list[str]:
    """List the names of the recipes that came with custos, in alphabetical order."""
    paths = (path.relative_to(RECIPES) for path in RECIPES.rglob(f"*{SUFFIX}"))
    return sorted(
        path.with_suffix("").as_posix() for path in paths if path.parts[0] not in LAUNCHERS
    )


def find_recipe(name: str) -> Path:
    """Find the file of a recipe, given as a path or by its name.

    Raises ``CustosError``, which names the nearest recipe, if there is none.
    """
    if Path(name).is_file():
        return Path(name)
    names = recipe_names()
    if (shipped := name.removesuffix(SUFFIX)) in names:
        return RECIPES / f"{shipped}{SUFFIX}"
    wanted = shipped.removeprefix("./").removeprefix("recipes/")
    by_last_part = {full.rpartition("/")[2]: full for full in names}
    near = get_close_matches(wanted, names, n=1, cutoff=0.5) or [
        by_last_part[part] for part in get_close_matches(wanted, by_last_part, n=1)
    ]
    nearest = f"the nearest is '{near[0]}'; " if near else ""
    raise CustosError(f"{name}: no such recipe; {nearest}'custos recipe list' names all")


def recipe_of_task(name: str) -> str | None:
    """Name the recipe for a task; ``None`` if there is no such task."""
    if name not in task_names():
        return None
    recipe = f"{RECIPES_OF_TASKS}/{name}"
    return recipe if recipe in recipe_names() else RECIPE_OF_LABELS


def section_keys(values: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Read the keys of a section of an unchecked recipe; none if it lacks the section.

    Raises ``FieldError`` if the recipe has something else under the section's name.
    """
    keys = values.get(name)
    if not isinstance(keys, dict | None):
        raise FieldError(name, f"expected a section of keys (got {keys!r})", str(path))
    return keys or {}


def summary_of(path: Path) -> str:
    """Read what the comment at the top of a recipe says it is for; empty if it says nothing.

    The first line of the comment is the launch command, the second the summary.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = [line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)]
    return comment[1] if len(comment) > 1 else ""


class RecipeKey(NamedTuple):
    """A key of recipes, in words."""

    name: str
    """Section and key, with a dot between them."""
    value: str
    default: str
    meaning: str


def sections(model: type[Section]) -> list[tuple[str, type[BaseModel]]]:
    """List the sections of a recipe, each with the model of its values, in their order."""
    return [
        (key, field.annotation)
        for key, field in model.model_fields.items()
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel)
    ]


def recipe_keys(model: type[Section]) -> Iterator[RecipeKey]:
    """Yield the keys of a recipe: first those outside of sections, then section by section."""
    of_sections = sections(model)
    for prefix, of in [("", model), *((f"{name}.", section) for name, section in of_sections)]:
        for name, field in of.model_fields.items():
            if prefix or (name, field.annotation) not in of_sections:
                texts = type_text(field), default_text(field), meaning(of, name)
                yield RecipeKey(prefix + name, *texts)
