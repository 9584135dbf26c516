"""MkDocs hook that adds the generated pages to the site (``hooks`` in ``mkdocs.yml``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from docs.hooks.commands import commands_page
from docs.hooks.fields import fields_page
from docs.hooks.recipe_keys import recipe_keys_page
from docs.hooks.root_pages import changelog_page, contributing_page

GENERATED: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/recipes.md": recipe_keys_page,
    "reference/fields.md": fields_page,
    "contributing.md": contributing_page,
    "changelog.md": changelog_page,
}
"""Page of the site to the function that writes its Markdown."""

FROM_OUTSIDE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?https?:[^>]*>")


def on_files(files: Files, config: Any) -> Files:
    """Add every generated page to the files of the site."""
    for page, write in GENERATED.items():
        files.append(File.generated(config, page, content=write()))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load something from another host when it is read."""
    if loaded := FROM_OUTSIDE.search(output):
        raise PluginError(f"{page.file.src_path} loads from outside: {loaded[0]}")
    return output
