"""The ways to train a judge, one file each; the key ``method`` of a recipe names the file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from judging.errors import FieldError

if TYPE_CHECKING:
    from train.methods.base import Method


def find_method(name: str) -> type[Method] | None:
    """Load the method of a name; ``None`` if there is none."""
    if name not in {found.name for found in iter_modules(__path__)}:
        return None
    method: type[Method] | None = getattr(import_module(f"{__name__}.{name}"), "METHOD", None)
    return method


def methods() -> dict[str, type[Method]]:
    """Load every method, by name in alphabetical order."""
    found = {module.name: find_method(module.name) for module in iter_modules(__path__)}
    return {name: method for name, method in found.items() if method is not None}


def method_of(path: Path, values: Mapping[str, Any], default: str | None = None) -> type[Method]:
    """Find the method that a recipe names; one without a name takes the ``default``."""
    name = values.get("method") or default
    if name is None:
        advice = "the recipe does not say how to train; add a line 'method: NAME'"
        raise FieldError("method", f"{advice}; {_names()}", str(path))
    if found := find_method(str(name)):
        return found
    raise FieldError("method", f"none is called '{name}'; {_names()}", str(path))


def _names() -> str:
    scripts = (f"{name} (train/{method.script}.py)" for name, method in methods().items())
    return f"known are {', '.join(scripts)}"
