"""Reference of the keys of recipes, from the Pydantic models of the training scripts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from pydantic import BaseModel

import train
from docs.hooks.models import field_table, markdown, summary
from train.setup.recipe import Section

INTRODUCTION = """\
# Recipe keys

A recipe is a YAML file that says all about one training run. Each training script reads recipes of
its own kind; this page lists the keys of every kind and is made from the classes that check them. A
key that is not on this page is an error.

A key can be set in the file or after the command, with dots between section and key:

```sh
accelerate launch train/hieval_stage1.py --config recipes/embedded/demo.yaml optim.lr=1e-4
```
"""


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
    shared = [section for section in _sections(*models.values()) if _users(section, models) > 1]
    parts = [INTRODUCTION, "## Sections of several scripts\n"]
    for section in shared:
        parts += _section(section)
    for script, model in models.items():
        parts += [f"## train/{script}.py\n", field_table(model)]
        for section in _sections(model):
            if section not in shared:
                parts += _section(section)
    return "\n".join(parts)


def _users(section: type[BaseModel], models: dict[str, type[Section]]) -> int:
    return sum(section in _sections(model) for model in models.values())


def _sections(*models: type[Section]) -> list[type[BaseModel]]:
    """Return the sections that recipes are made of, each once, in the order of their keys."""
    sections = [
        annotation
        for model in models
        for field in model.model_fields.values()
        if inspect.isclass(annotation := field.annotation) and issubclass(annotation, BaseModel)
    ]
    return list(dict.fromkeys(sections))


def _section(section: type[BaseModel]) -> Iterator[str]:
    yield f"### {section.__name__}\n"
    yield f"{markdown(summary(section))}\n"
    yield field_table(section)
