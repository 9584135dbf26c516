"""Tables of the fields of Pydantic models: name, type, default and docstring."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import griffe
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docs.hooks.roles import ROLE

ROOT = Path(__file__).parents[2]

PLAIN_TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Path: "path",
    Any: "any value",
}

LIMITS = {"gt": "> {}", "ge": "≥ {}", "lt": "< {}", "le": "≤ {}"}


def field_table(
    model: type[BaseModel], leave_out: frozenset[str] = frozenset(), prefix: str = ""
) -> str:
    """Return a Markdown table of the fields of a model.

    Args:
        model: Class whose fields have docstrings.
        leave_out: Names of fields that get no row.
        prefix: Text in front of every name.
    """
    rows = [
        f"| `{prefix}{name}` | {type_text(field)} | {default_text(field)} "
        f"| {field_docstring(model, name)} |"
        for name, field in model.model_fields.items()
        if name not in leave_out
    ]
    return "\n".join(("| name | value | default | meaning |", "|---|---|---|---|", *rows, ""))


def type_text(field: FieldInfo) -> str:
    """Return what a field takes, in words, with its limits."""
    limits = ", ".join(
        text.format(f"{value:,}" if isinstance(value, int) else value)
        for constraint in field.metadata
        for name, text in LIMITS.items()
        if (value := getattr(constraint, name, None)) is not None
    )
    return ", ".join(filter(None, (plain_type(field.annotation), limits)))


def plain_type(annotation: Any) -> str:
    """Return a type annotation in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return plain_type(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(plain_type(part) for part in arguments if part is not type(None))
    if origin is tuple and arguments[-1] is ...:
        return f"list of {plain_type(arguments[0])}"
    if origin is tuple:
        return f"{len(arguments)} of {plain_type(arguments[0])}"
    if origin is dict:
        return f"object: {plain_type(arguments[0])} to {plain_type(arguments[1])}"
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return PLAIN_TYPES.get(annotation, f"`{annotation}`")


def default_text(field: FieldInfo) -> str:
    """Return the default of a field as it would stand in a file."""
    if field.is_required():
        return "required"
    if field.default is PydanticUndefined or field.default in ((), ""):
        return "empty"
    if field.default is None:
        return "none"
    if isinstance(field.default, BaseModel):
        return "its own defaults"
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    if isinstance(field.default, tuple):
        return ", ".join(f"`{value}`" for value in field.default)
    return f"`{field.default}`"


def field_docstring(model: type[BaseModel], name: str) -> str:
    """Return the docstring that stands below a field, as one line of Markdown."""
    for parent in model.__mro__:
        if name in parent.__dict__.get("__annotations__", {}):
            member = _members(parent.__module__, parent.__qualname__)[name]
            return markdown(member.docstring.value) if member.docstring else ""
    return ""


def markdown(docstring: str) -> str:
    """Return a docstring's text on one line, with Markdown's code marks."""
    text = ROLE.sub(r"`\1`", docstring).replace("``", "`")
    return " ".join(text.split()).replace("|", "\\|")


def summary(entry: type) -> str:
    """Return the first paragraph of a class's own docstring."""
    return markdown(inspect.cleandoc(entry.__doc__ or "").partition("\n\n")[0])


@cache
def _members(module: str, qualname: str) -> Mapping[str, griffe.Object]:
    loaded: Any = griffe.load(module, search_paths=[str(ROOT)])
    members: Mapping[str, griffe.Object] = loaded[qualname].members
    return members
