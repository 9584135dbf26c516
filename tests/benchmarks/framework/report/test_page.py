"""The page: complete, self-contained, and safe from the texts that it shows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import build_table
from benchmarks.framework.report.page import cell_map, render_html
from judging.errors import CustosError
from judging.types import Verdict
from tests.benchmarks.charthal.test_benchmark import item

CHARTHAL = get_benchmark("charthal")


ATTACK = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'</details>"


class Page(HTMLParser):
    """Elements in order, with their attributes, and the text within each kind."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "input", "line", "circle"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def rows_with(response: str, image: Path | None = None, **fields: Any) -> list[dict[str, Any]]:
    said = (("1", {"1": 0.8, "0": 0.2}), ("0", {"1": 0.1, "0": 0.9}))
    rows = []
    for number, (label, posterior) in enumerate(said):
        verdict = Verdict(status="scored", label=label, probabilities=posterior, judge="j1")
        row = item(id=str(number), figure_id=number, response=response, **fields)
        rows.append(
            CHARTHAL.graded_row({**row, "images": [str(image)] if image else []}, [verdict])
        )
    return rows


def page_of(rows: list[dict[str, Any]], people: list[dict[str, Any]] | None = None) -> str:
    table = build_table(CHARTHAL, GradedModel("x", rows, people or []), True)
    return render_html(CHARTHAL, rows, table, "gpt.eval.json", people or [])


def test_nothing_from_outside_becomes_markup() -> None:
    rows = rows_with(ATTACK, question=ATTACK, ref_answer=ATTACK)
    html = page_of([{**row, "id": f"{ATTACK}{row['id']}"} for row in rows])
    page = Page(html)
    assert [attributes.get("type") for attributes in page.all("script")] == [
        "application/json",
        None,
    ]
    assert not page.all("img")
    assert not [name for _, attributes in page.elements for name in attributes if name[:2] == "on"]
    assert html.count("<script") == 2
    assert ATTACK in "".join(page.texts["dd"])  # shown as it is


def test_the_policy_lets_only_the_pages_own_script_run() -> None:
    html = page_of(rows_with("x"))
    [policy] = [a for a in Page(html).all("meta") if a.get("http-equiv")]
    hashes = re.findall(r"'sha256-([^']+)'", policy["content"] or "")
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert (hashes, len(script)) == ([digest], 1)
    assert "default-src 'none'" in (policy["content"] or "")


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    Image.new("RGB", (2000, 1000), (10, 120, 200)).save(picture)
    html = page_of(rows_with("x", picture), [{"id": "0", "score": 1}, {"id": "1", "score": 1}])
    page = Page(html)
    for tag in ("link", "iframe", "object", "base"):
        assert not page.all(tag)
    for attributes in (a for _, a in page.elements):
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "data:").startswith("data:")
    images = json.loads(html.partition('id="images">')[2].partition("</script>")[0])
    [(source, url)] = images.items()
    assert source == str(picture)
    assert url.startswith("data:image/jpeg;base64,")
    assert len(url) < 20_000  # a thumbnail, once for both items
    assert [a["data-image"] for a in page.all("img") if "data-image" in a] == [source] * 2


def test_every_item_can_be_read_and_filtered() -> None:
    page = Page(page_of(rows_with("It says twelve.")))
    items = [a for a in page.all("details") if a.get("class") == "item"]
    assert [(a["data-verdict"], a["data-0"], a["data-1"]) for a in items] == [
        ("1", "desc", "normal"),
        ("0", "desc", "normal"),
    ]
    assert [a["data-field"] for a in page.all("select")] == ["0", "1", "verdict"]
    assert [a["value"] for a in page.all("meter")] == ["0.8", "0.2", "0.1", "0.9"]
    shown = "".join(page.texts["dd"])
    for text in ("What is the peak?", "12", "It says twelve."):
        assert text in shown
    assert any("judges: j1" in text for text in page.texts["li"])


def test_a_picture_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    html = page_of(rows_with("x", tmp_path / "none.png"))
    assert html.count("A picture could not be read.") == 2


@pytest.mark.parametrize("field", ["images", "verdicts"])
def test_a_null_field_is_an_empty_one(field: str) -> None:
    rows = rows_with("x")
    for row in rows:
        del row[field]
    assert page_of([{**row, field: None} for row in rows]) == page_of(rows)


@pytest.mark.parametrize("images", [[7], "a.png", 7])
def test_pictures_that_are_none_are_named_with_their_item(images: Any) -> None:
    rows = [{**row, "images": images} for row in rows_with("x")]
    with pytest.raises(CustosError, match=r"item '0': field 'images': expected a list"):
        page_of(rows)


def test_the_map_of_cells() -> None:
    rows = [
        item("open_irrel", id="a", figure_id=1, score=1),
        item("open_irrel", id="b", figure_id=2, score=0),
        item("desc_normal", id="c", figure_id=3, score=1),
        item("desc_normal", id="d", figure_id=3, score=-1),
    ]
    found = cell_map(CHARTHAL, rows, CHARTHAL.scores(rows))
    assert found is not None
    assert (found["rows"], found["columns"]) == (["desc", "open"], ["irrel", "normal"])
    assert found["cells"] == [[None, {"value": 1, "n": 1}], [{"value": 0.5, "n": 2}, None]]


def test_the_map_is_of_all_rows_and_the_browser_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.framework.report.page.MAX_ITEMS", 10)
    rows = [item(id=str(n), figure_id=n, response="x", score=int(n < 10)) for n in range(40)]
    first, last = page_of(rows), page_of(rows[::-1])
    of_all, backwards = (
        page[page.index('<table class="cells">') :].split("</table>")[0] for page in (first, last)
    )
    assert of_all == backwards
    assert "<b>25.0</b><small>n = 40</small>" in of_all
    assert "The first 10 of 40 items" in " ".join(first.split())
