"""Reference of the keys of recipes, from the Pydantic models of the training scripts."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from pydantic import BaseModel

import train
from docs.hooks.models import field_table, summary
from train.setup.recipe import Section

INTRODUCTION = """\
# Recipe keys

A recipe is a YAML file that describes one training run completely. Each training script reads
recipes of its own kind. This page is made from the classes that check them. A key that is not here
is an error.

A key can be set in the file. It can also be set after the command, with a dot between section and
key, and then wins over the file:

```sh
accelerate launch train/hieval_stage1.py --config recipes/embedded/demo.yaml optim.lr=1e-4
```
"""

KeyedSection = tuple[str, type[BaseModel]]
"""A section of a recipe: its key, and the model of its values."""


def recipe_models() -> dict[str, type[Section]]:
    """Return the recipe model of every training script, by the script's name."""
    return {
        module.name: recipe
        for module in iter_modules(train.__path__)
        if not module.ispkg
        for _, recipe in inspect.getmembers(import_module(f"train.{module.name}"), inspect.isclass)
        if issubclass(recipe, Section)
        and recipe.__name__.endswith("Recipe")
        and recipe.__module__ == f"train.{module.name}"
    }


def recipe_keys_page() -> str:
    """Return the Markdown of the page."""
    models = recipe_models()
    uses = Counter(section for model in models.values() for section in _sections(model))
    shared = [section for section, count in uses.items() if count > 1]
    parts = [INTRODUCTION, "## Sections of several scripts\n"]
    for section in shared:
        parts += _description(section)
    for script, model in models.items():
        parts.append(f"## train/{script}.py\n")
        sections = _sections(model)
        keys = ", ".join(f"`{key}`" for key, part in sections if (key, part) in shared)
        parts.append(f"Its recipes have the sections {keys}, and these keys:\n")
        parts.append(field_table(model, frozenset(key for key, _ in sections)))
        for section in sections:
            if section not in shared:
                parts += _description(section)
    return "\n".join(parts)


def _sections(model: type[Section]) -> list[KeyedSection]:
    """Return the sections of a recipe in the order of its fields."""
    return [
        (key, field.annotation)
        for key, field in model.model_fields.items()
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel)
    ]


def _description(section: KeyedSection) -> Iterator[str]:
    key, model = section
    yield f"### {key}\n"
    yield f"{summary(model)}\n"
    yield field_table(model, prefix=f"{key}.")
