"""Groups of options that several verbs share: declared once as a dataclass, taken as one value.

A verb names the group as the type of a parameter. For typer, the fields of the group stand in the
parameter's place.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter, Signature
from typing import Any, get_type_hints


def with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb whose parameters are single options, in place of groups of them."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def parameters() -> Iterator[Parameter]:
        for name, parameter in inspect.signature(verb).parameters.items():
            if name in groups:
                yield from _options(groups[name])
            else:
                yield parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])

    @functools.wraps(verb)
    def run(**options: Any) -> None:
        values = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        verb(**options, **values)

    run.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]  # typer reads it
    return run


def _options(group: Any) -> Iterator[Parameter]:
    """Yield the fields of a group as parameters."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=hints[field.name],
        )


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default
