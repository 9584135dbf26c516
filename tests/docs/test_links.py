"""Every link of the pages leads somewhere."""

import re
from pathlib import Path

import pytest
import yaml

from docs.hooks.site import GENERATED, SOURCES, to_generated
from tests.docs.markdown_pages import (
    DOCS,
    PAGES,
    ROOT,
    SITE_PAGES,
    anchors,
    links,
    name_of,
)

GENERATED_FROM = {ROOT / source: DOCS / page for page, source in SOURCES.items()}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_anchors(page: Path) -> None:
    """Files are there without the site; the source of a generated page has that page's anchors."""
    broken = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        on_site = GENERATED_FROM.get(linked, linked)
        if not linked.exists() or (anchor and anchor not in anchors(on_site)):
            broken.append(target)
    assert broken == []


def test_the_site_leads_to_its_own_pages() -> None:
    text = (
        "[a](../judging/types.py#verdict) [b](../train/setup/recipe.py) [c](../judging/types.pyi)"
    )
    assert to_generated(text, "serving.md") == (
        "[a](reference/fields.md#verdict) [b](reference/recipes.md) [c](../judging/types.pyi)"
    )
    assert to_generated("[a](../../judging/types.py)", "reference/python.md") == "[a](fields.md)"
    for page in SITE_PAGES:
        text = page.read_text(encoding="utf-8")
        on_site = to_generated(text, page.relative_to(DOCS).as_posix())
        assert not re.search(r"\]\([./]*[\w/]+\.py\b", on_site), page
        assert not re.search(r"\]\(\.\./[A-Z]+\.md", on_site), page


def test_the_way_through_the_site_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pending = [yaml.safe_load(text)["nav"]]
    listed = set()
    while pending:
        entry = pending.pop()
        if isinstance(entry, str):
            listed.add(entry)
        else:
            pending += entry.values() if isinstance(entry, dict) else entry
    assert listed == {page.relative_to(DOCS).as_posix() for page in SITE_PAGES} | set(GENERATED)
