"""Values, defaults and meanings of the fields of Pydantic models, in words and Markdown."""

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

PLAIN_TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Path: "path",
    Any: "any value",
}

LIMITS = {"gt": "> {}", "ge": "≥ {}", "lt": "< {}", "le": "≤ {}"}

ROLE = re.compile(r":\w+:`~?([^`]+)`")
"""A Sphinx role in a docstring, such as ``:meth:`load```."""


def type_text(field: FieldInfo) -> str:
    """Tell what a field takes, in words, with its limits."""
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


def meaning(model: type[BaseModel], name: str) -> str:
    """Return the docstring that stands below a field, as one line of Markdown."""
    for parent in model.__mro__:
        if name in parent.__dict__.get("__annotations__", {}):
            return markdown(_docstrings(parent).get(name, ""))
    return ""


def markdown(docstring: str) -> str:
    """Return a docstring's text on one line, with Markdown's code marks."""
    text = ROLE.sub(r"`\1`", docstring).replace("``", "`")
    return " ".join(text.split()).replace("|", "\\|")


@cache
def _docstrings(model: type) -> Mapping[str, str]:
    """Return the docstring below each annotated name in the body of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
