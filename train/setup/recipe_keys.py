"""The keys of recipes, explained."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import BaseModel

from judging.field_text import default_text, meaning, type_text
from train.setup.recipe import Section


class RecipeKey(NamedTuple):
    """A key of recipes, in words."""

    name: str
    """Section and key, with a dot between them."""
    value: str
    default: str
    meaning: str


def sections(model: type[Section]) -> list[tuple[str, type[BaseModel]]]:
    """Return the sections of a recipe, each with the model of its values, in their order."""
    return [
        (key, field.annotation)
        for key, field in model.model_fields.items()
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel)
    ]


def recipe_keys(model: type[Section]) -> Iterator[RecipeKey]:
    """Yield the keys of a recipe: first those outside of sections, then section by section."""
    of_sections = sections(model)
    names = {name for name, _ in of_sections}
    yield from (key for key in _keys(model, "") if key.name not in names)
    for name, section in of_sections:
        yield from _keys(section, f"{name}.")


def _keys(model: type[BaseModel], prefix: str) -> Iterator[RecipeKey]:
    for name, field in model.model_fields.items():
        yield RecipeKey(prefix + name, type_text(field), default_text(field), meaning(model, name))
