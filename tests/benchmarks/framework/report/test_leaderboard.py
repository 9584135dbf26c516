"""The page and the Markdown of several models."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.graded import GradedModel
from benchmarks.framework.leaderboard import build_leaderboard
from benchmarks.framework.report.leaderboard import (
    CALIBRATION_TITLE,
    difference_matrix,
    draw_radar,
    radar_shapes,
    render_leaderboard_html,
)
from benchmarks.framework.report.text import (
    difference_rows,
    figure_text,
    render_leaderboard_markdown,
)
from tests.benchmarks.chartom.test_benchmark import item as chart
from tests.benchmarks.framework.report.test_page import ATTACK, Page
from tests.benchmarks.framework.test_leaderboard import responses
from tests.benchmarks.hieval.test_benchmark import HIEVAL, example
from tests.benchmarks.simplevqa.made_up import SIMPLEVQA, item
from tests.benchmarks.truthfulvqa.test_benchmark import item as question

CHARTHAL, CHARTOM, TRUTHFULVQA = map(get_benchmark, ("charthal", "chartom", "truthfulvqa"))


@pytest.fixture(scope="module")
def leaderboard() -> dict[str, Any]:
    models = {
        "low": GradedModel("low.json", responses(0.2)),
        ATTACK: GradedModel(f"{ATTACK}.json", responses(0.9, 1)),
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
    for attributes in (attributes for _, attributes in page.elements):
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert len([row for row in page.all("tr") if row.get("class") == "ours"]) == 2
    for side in ("higher", "lower"):
        assert [cell for cell in page.all("td") if cell.get("class") == side]


def test_models_that_never_differ_are_no_proof_of_equality() -> None:
    """Print a difference of 0 without a sign, and no interval from two equal items."""
    models = {name: GradedModel(name, responses(0.5)[:4:2]) for name in "ab"}
    [cells] = difference_rows(build_leaderboard(CHARTHAL, models), 100)
    assert cells[:4] == ["a minus b", "0.00", "- to -", "2"]


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


def test_differences_are_turned_round() -> None:
    difference = {"value": 2.0, "low": 1.0, "high": 3.0, "n": 9}
    pair = {"models": ["a", "b"], "difference": difference, "p": 0.1, "p_holm": 0.2}
    made_up = {"models": {"a": {}, "b": {}, "c": {}}, "differences": [pair]}
    assert difference_rows(made_up, 100) == [
        ["a minus b", "-2.00", "-3.00 to -1.00", "9", "0.1000", "0.2000"],
    ]
    rows = difference_matrix(made_up, 100)
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["cells"] == [None, {"text": "-2.00 [-3.00 to -1.00]", "side": "lower"}, None]
    assert rows[1]["cells"][0] == {"text": "2.00 [1.00 to 3.00]", "side": "higher"}


def test_differences_of_shares_are_in_the_unit_of_the_tables() -> None:
    """A share is shown in per cent in the tables, and so is a difference of shares."""
    difference = {"value": -0.25, "low": None, "high": -0.03571, "n": 9}
    pair = {
        **{"models": ["a", "b"], "difference": difference},
        **{"p": 1e-9, "p_holm": 1e-5},
    }
    assert difference_rows({"differences": [pair]}, 1) == [
        ["a minus b", "25.00", "3.57 to -", "9", "< 0.0001", "< 0.0001"],
    ]


def test_the_page_says_what_a_table_holds_and_how_it_is_sorted(
    leaderboard: dict[str, Any],
) -> None:
    results, items = leaderboard["tables"]
    assert (results["title"], items["title"]) == (
        "Published and measured, Table 2",
        "Published, Table 1: items",
    )
    assert results["note"].endswith("Sorted by overall, the highest first.")
    assert "Sorted" not in items["note"]
    for text in (
        render_leaderboard_html(CHARTHAL, leaderboard),
        render_leaderboard_markdown(CHARTHAL, leaderboard),
    ):
        assert results["note"] in text
        assert "p, Holm" in text
    rows = [question(n, 1 + n % 3, "(D)") for n in range(9)]
    by_level = build_leaderboard(TRUTHFULVQA, {"x": GradedModel("x", rows)})["tables"][0]
    assert by_level["note"].endswith("; rows without a number there come last.")


def test_the_radar_has_our_models_and_the_best_published_ones() -> None:
    models = {name: GradedModel("x", responses(0.5, n)) for n, name in enumerate("abcdefg")}
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


def has_colour(picture: Image.Image, colour: str) -> bool:
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return bool((np.asarray(picture) == wanted).all(axis=-1).any())


def test_pictures_of_a_benchmark_with_stated_confidence() -> None:
    rows = [
        item(n, "AB"[n % 2], response=f"x [{0.1 + 0.8 * (n % 2)}]", **({"task": "LS"}))
        for n in range(20)
    ]
    models = {"one": GradedModel("1", rows), "two": GradedModel("2", rows[:10])}
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


def test_a_benchmark_without_stated_confidence_has_no_such_picture() -> None:
    rows = [question(n, 1 + n % 3, "(D)") for n in range(9)]
    leaderboard = build_leaderboard(TRUTHFULVQA, {"x": GradedModel("x", rows)})
    assert list(pictures(render_leaderboard_html(TRUTHFULVQA, leaderboard))) == [
        "Figure 3d (%): accuracy by category"
    ]
    stated = [{**row, "response": "(D)[0.7]"} for row in rows]
    leaderboard = build_leaderboard(TRUTHFULVQA, {"x": GradedModel("x", stated)})
    assert CALIBRATION_TITLE in pictures(render_leaderboard_html(TRUTHFULVQA, leaderboard))
    few = build_leaderboard(TRUTHFULVQA, {"x": GradedModel("x", stated[:4])})
    assert CALIBRATION_TITLE not in pictures(render_leaderboard_html(TRUTHFULVQA, few))


def test_names_around_a_radar_are_not_cut_off(tmp_path: Path) -> None:
    """Check that all four margins of a picture are blank, whatever the names' lengths."""
    names = ("a", "Up", "a very long name of an axis", "b" * 25, "Down", "c")
    draw_radar(names, {"model": [50.0] * 6, "m" * 60: [60.0] * 6}, tmp_path / "radar.png")
    shades = np.asarray(Image.open(tmp_path / "radar.png").convert("L"))
    for edge in (shades[0], shades[-1], shades[:, 0], shades[:, -1]):
        assert (edge == 255).all()


def test_judges_of_hieval_stand_beside_the_rules_with_time_and_cost() -> None:
    people = ("Correct", "Wrong", "Partial", "Wrong")
    files = {
        name: [
            example(n, label, given)
            for n, (label, given) in enumerate(zip(people, said, strict=True))
        ]
        for name, said in (("good", people), ("poor", ("Wrong", "Wrong", "Wrong", None)))
    }
    spent = {"judge": "j", "requests": 4, "seconds": 8.0, "cost": "free"}
    models = {name: GradedModel(name, rows, run=spent) for name, rows in files.items()}
    leaderboard = build_leaderboard(HIEVAL, models)
    table = leaderboard["tables"][0]
    assert table["source"] == "Table 2: quick score"
    ours = [row for row in table["rows"] if row["ours"]]
    # Rules call "some" wrong for "19". Of four replies the poor judge has one right and one unread.
    by_name = {row["name"]: [figure_text(figure) for figure in row["figures"]] for row in ours}
    assert list(by_name) == ["good", "Acc (rule)", "Relaxed-Acc (rule)", "poor"]
    assert by_name["good"][:2] == ["8.00", "free"]
    assert by_name["Acc (rule)"][:2] == ["", "free"]
    shares = {name: cells[2].split()[0] for name, cells in by_name.items()}
    assert (shares["good"], shares["Acc (rule)"], shares["poor"]) == ("100.00", "50.00", "25.00")
    text = render_leaderboard_markdown(HIEVAL, leaderboard)
    assert "| Wrong " in text  # Table 7, whose rows are labels
    [difference] = leaderboard["differences"]
    assert difference["difference"]["n"] == 3  # the unread reply is no part of the pairs


def test_models_of_chartom_stand_in_a_table_of_their_own() -> None:
    rows = [
        CHARTOM.graded_row(chart(fact_response=said, mind_response="0.4"), [])
        for said in ("1.2 million bags", "6 million bags")
    ]
    models = {name: GradedModel(name, [row]) for name, row in zip("ab", rows, strict=True)}
    leaderboard = build_leaderboard(CHARTOM, models)
    table = leaderboard["tables"][0]
    assert table["source"] == "Section 2.3: models"
    assert [row["name"] for row in table["rows"]] == ["a", "b"]
    html = render_leaderboard_html(CHARTOM, leaderboard)
    shown = Page(html).texts
    assert {"a", "b", "G7_Q1", "G14_Q1"} <= set(shown["th"])
    assert "3D effect + pop out" in shown["td"]


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


def test_a_table_of_two_items_is_not_ranked_without_a_caution() -> None:
    few = build_leaderboard(CHARTHAL, {"x": GradedModel("x.json", responses(0.5)[:2])})
    assert few["tables"][0]["ranked_by"]
    assert few["models"]["x"]["caution"] in few["tables"][0]["note"]
    for render in (render_leaderboard_html, render_leaderboard_markdown):
        assert "no more than 1 question" in render(CHARTHAL, few)
