"""MkDocs hook that adds the generated pages to the site (``hooks`` in ``mkdocs.yml``)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from docs.hooks.commands import commands_page
from docs.hooks.fields import fields_page
from docs.hooks.recipe_keys import recipe_keys_page
from docs.hooks.root_pages import changelog_page, contributing_page, security_page

GENERATED: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/recipes.md": recipe_keys_page,
    "reference/fields.md": fields_page,
    "contributing.md": contributing_page,
    "security.md": security_page,
    "changelog.md": changelog_page,
}
"""Page of the site to the function that writes its Markdown."""
SOURCES = {
    "reference/recipes.md": "train/setup/recipe.py",
    "reference/fields.md": "judging/types.py",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
"""Generated page to the file of the repository that holds the same.

Pages in ``docs/`` link to that file, so that the link also works where no site is built.
"""

FROM_OUTSIDE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?https?:[^>]*>")


def on_files(files: Files, config: Any) -> Files:
    """Add every generated page to the files of the site."""
    for page, write in GENERATED.items():
        files.append(File.generated(config, page, content=write()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to the source of a generated page to that page."""
    return to_generated(markdown, page.file.src_uri)


def to_generated(markdown: str, page: str) -> str:
    """Return the Markdown of a page with links to generated pages in place of their sources.

    Args:
        markdown: The Markdown as it lies in the repository.
        page: Path of the page in ``docs/``.
    """
    folder = posixpath.dirname(page) or "."
    for generated, source in SOURCES.items():
        linked = posixpath.relpath(source, posixpath.join("docs", folder))
        on_site = posixpath.relpath(generated, folder)
        markdown = re.sub(rf"\]\({re.escape(linked)}(?=[)#])", f"]({on_site}", markdown)
    return markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load something from another host when it is read."""
    if loaded := FROM_OUTSIDE.search(output):
        raise PluginError(f"{page.file.src_path} loads from outside: {loaded[0]}")
    return output
