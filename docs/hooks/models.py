"""Tables of the fields of Pydantic models: name, type, default and docstring."""

from __future__ import annotations

import inspect

from pydantic import BaseModel

from judging.field_text import default_text, markdown, meaning, type_text


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
        f"| {meaning(model, name)} |"
        for name, field in model.model_fields.items()
        if name not in leave_out
    ]
    return "\n".join(("| name | value | default | meaning |", "|---|---|---|---|", *rows, ""))


def summary(entry: type) -> str:
    """Return the first paragraph of a class's own docstring."""
    return markdown(inspect.cleandoc(entry.__doc__ or "").partition("\n\n")[0])
