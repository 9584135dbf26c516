"""Every link of the pages leads somewhere."""

from pathlib import Path

import pytest
import yaml

from docs.hooks.site import GENERATED
from tests.docs.markdown_pages import (
    DOCS,
    PAGES,
    ROOT,
    SITE_PAGES,
    anchors,
    is_page,
    links,
    name_of,
)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_anchors(page: Path) -> None:
    broken = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if not is_page(linked) or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert broken == []


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
