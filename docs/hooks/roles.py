"""Griffe extension that shows docstrings' Sphinx roles as code: ``:meth:`load``` as ``load``."""

from __future__ import annotations

from typing import Any

import griffe

from judging.field_text import ROLE


class RolesAsCode(griffe.Extension):
    """Rewrite the docstring of every object that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace roles by the code that they name, and double backticks by single ones."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value).replace("``", "`")
