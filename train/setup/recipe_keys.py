"""The recipe models of the training scripts, and their keys."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

import train
from train.setup.recipe import Section


def script_names() -> list[str]:
    """Return the names of the training scripts in ``train/``."""
    return [module.name for module in iter_modules(train.__path__) if not module.ispkg]


def recipe_model(script: str) -> type[Section]:
    """Return the model of the recipes of a training script."""
    module = import_module(f"train.{script}")
    return next(
        recipe
        for _, recipe in inspect.getmembers(module, inspect.isclass)
        if issubclass(recipe, Section)
        and recipe.__name__.endswith("Recipe")
        and recipe.__module__ == module.__name__
    )
