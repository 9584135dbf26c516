"""Reports: complete pages that need nothing else and are safe from texts, Markdown, pictures."""

import base64
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import build_leaderboard, build_table
from benchmarks.framework.report.leaderboard import (
    CALIBRATION_TITLE,
    radar_shapes,
    render_leaderboard_html,
)
from benchmarks.framework.report.page import (
    cell_map,
    figure_text,
    render_html,
    render_leaderboard_markdown,
)
from judging.errors import FieldError
from judging.types import Verdict
from tests.benchmarks.framework.test_correction import graded
from tests.benchmarks.framework.test_graded import responses
from tests.benchmarks.test_charthal import CHARTHAL, item
from tests.benchmarks.test_simplevqa import SIMPLEVQA
from tests.benchmarks.test_simplevqa import item as picture
from tests.cli.bench.made_up import read, run, write

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


def assert_needs_nothing_else(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "base")
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "data:").startswith("data:")


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
    model = GradedModel(CHARTHAL, rows, "gpt.eval.json", people or [], random_sample=True)
    return render_html(model, build_table(model))


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
    assert_needs_nothing_else(page)
    images = json.loads(html.partition('id="images">')[2].partition("</script>")[0])
    [(source, url)] = images.items()
    assert source == str(picture)
    assert url.startswith("data:image/jpeg;base64,")
    assert len(url) < 20_000  # a thumbnail, once for both items
    assert [a["data-image"] for a in page.all("img") if "data-image" in a] == [source] * 2
    gone = page_of(rows_with("x", tmp_path / "none.png"))
    assert gone.count("A picture could not be read.") == 2


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


def test_items_that_share_an_id_keep_their_own_scores() -> None:
    rows = [item(response="x", score=score) for score in (1, 0)]
    items = [a for a in Page(page_of(rows)).all("details") if a.get("class") == "item"]
    assert [a["data-verdict"] for a in items] == ["100", "0"]


@pytest.mark.parametrize("images", [[7], "a.png", 7])
def test_pictures_that_are_none_are_named_with_their_item(images: Any) -> None:
    with pytest.raises(FieldError) as error:
        page_of([{**row, "images": images} for row in rows_with("x")])
    assert (error.value.location, error.value.field) == ("item '0'", "images")


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


@pytest.fixture(scope="module")
def leaderboard() -> dict[str, Any]:
    models = {
        "low": GradedModel(CHARTHAL, responses(0.2), "low.json"),
        ATTACK: GradedModel(CHARTHAL, responses(0.9, 1), f"{ATTACK}.json"),
    }
    return build_leaderboard(CHARTHAL, models)


def test_the_page_holds_every_row_and_needs_nothing_else(leaderboard: dict[str, Any]) -> None:
    html = render_leaderboard_html(CHARTHAL, leaderboard)
    page = Page(html)
    shown = {"".join(text.split()) for text in page.texts["th"]}
    for published in CHARTHAL.published:
        assert {"".join(name.split()) for name in published.rows} <= shown
    cells = set(page.texts["td"])
    assert {"49.34", "27.02", "8.57"} <= cells
    assert ATTACK not in html
    assert not page.all("script")
    assert "script-src" not in html
    assert_needs_nothing_else(page)
    assert len([row for row in page.all("tr") if row.get("class") == "ours"]) == 2
    for side in ("higher", "lower"):
        assert [cell for cell in page.all("td") if cell.get("class") == side]


def test_markdown_holds_the_same(leaderboard: dict[str, Any]) -> None:
    text = render_leaderboard_markdown(CHARTHAL, leaderboard)
    lines = text.splitlines()
    [own] = [line for line in lines if line.startswith("| **low**")]
    [row] = [row for row in leaderboard["tables"][0]["rows"] if row["name"] == "low"]
    assert figure_text(row["figures"][-1]) in own.replace("\\", "")
    for published in CHARTHAL.published:
        for name in published.rows:
            assert any(line.startswith(f"| {name} ") for line in lines), name
    [difference] = [line for line in lines if " minus low" in line]
    estimate = leaderboard["differences"][0]["difference"]
    assert f"{-estimate['value']:.4g}" in difference  # the files' difference is second less first


def test_the_radar_has_our_models_and_the_best_published_ones() -> None:
    models = {name: GradedModel(CHARTHAL, responses(0.5, n)) for n, name in enumerate("abcdefg")}
    table = build_leaderboard(CHARTHAL, models)["tables"][0]
    axes = CHARTHAL.published[1].radar
    shapes = radar_shapes(table, axes)
    assert [name for name in shapes if "published" in name] == [
        "Qwen2.5-VL-72B-Instruct (published)",
        "Gemini-2.5-Pro (published)",
        "GPT-5 (high) (published)",
    ]
    assert len(shapes) == 8
    assert shapes["Gemini-2.5-Pro (published)"] == [60.31, 50.31, 36.69, 36.8, 52.62, 49.52, 58.58]
    only_published = {**table, "rows": [row for row in table["rows"] if not row["ours"]]}
    assert radar_shapes(only_published, axes) == {}


def pictures(html: str) -> dict[str, Image.Image]:
    page = Page(html)
    sources = {str(a["alt"]): str(a["src"]).partition(",")[2] for a in page.all("img")}
    return {
        alt: Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
        for alt, data in sources.items()
    }


def has_colour(drawn: Image.Image, colour: str) -> bool:
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return bool((np.asarray(drawn) == wanted).all(axis=-1).any())


def test_pictures_of_a_benchmark_with_stated_confidence() -> None:
    rows = [
        picture(n, "AB"[n % 2], response=f"x [{0.1 + 0.8 * (n % 2)}]", task="LS") for n in range(20)
    ]
    models = {f"of {n}": GradedModel(SIMPLEVQA, rows[:n]) for n in (20, 10)}
    drawn = pictures(render_leaderboard_html(SIMPLEVQA, build_leaderboard(SIMPLEVQA, models)))
    assert list(drawn) == [
        "Table 3 (%): overall, then F by task",
        "Table 4 (%): by language, then F by domain",
        CALIBRATION_TITLE,
    ]
    calibration = drawn[CALIBRATION_TITLE]
    assert has_colour(calibration, "#0072B2")  # one line a model
    assert has_colour(calibration, "#D55E00")
    assert not has_colour(calibration, "#009E73")


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (49.34, "49.34"),
        (45.3, "45.30"),
        (0.188, "0.188"),
        (0.9397, "0.9397"),
        (10097.85, "10097.85"),
        (1062, "1062"),
        (None, ""),
        ("$0.1 + $0.4", "$0.1 + $0.4"),
        ({"value": 31.734, "low": 28.0, "high": 35.5, "n": 9}, "31.73 [28.00, 35.50]"),
        ({"value": 0.0444, "low": 0.03, "high": None, "n": 9}, "0.044 [0.030, -]"),
        ({"value": None, "low": None, "high": None, "n": 0}, ""),
    ],
)
def test_figures_as_text(figure: Any, text: str) -> None:
    assert figure_text(figure) == text


def test_the_table_with_people_in_every_form(tmp_path: Path) -> None:
    model = graded(5)
    path, said = tmp_path / "x.eval.jsonl", tmp_path / "people.json"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in model.rows))
    write(said, {row["id"]: {"score": row["score"]} for row in model.people})
    out = {kind: tmp_path / f"out.{kind}" for kind in ("json", "markdown", "html")}
    forms = [part for kind, file in out.items() for part in (f"--{kind}", file)]
    options = ("--random-sample", "--people", said)
    done = run("table", "charthal", "--graded", path, *options, *forms)
    assert done.exit_code == 0, done.stderr
    corrected = read(out["json"])["corrected"]["corrected"]
    for text in (done.stdout, out["markdown"].read_text(), out["html"].read_text()):
        for expected in (f"corrected score: {corrected['value']:.4g} [", "judges: j1"):
            assert expected in text
    # rates, confusion, calibration
    assert Page(out["html"].read_text()).all("figure") == [{}, {}, {}]
