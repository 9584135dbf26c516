"""The cells and tables of Markdown reports."""

from __future__ import annotations

from evaluation.report.markdown import (
    number,
    p_value,
    render_markdown,
    table,
    table_row,
    with_interval,
)
from evaluation.report.report import build_report
from tests.evaluation.made_up import evaluation

ESTIMATE = {"value": 0.91399, "low": 0.8985, "high": 0.92777, "n": 3}


def test_figures_as_text() -> None:
    assert (number(0.12345), number(0.12345, 1), number(None)) == ("0.123", "0.1", "-")
    assert with_interval(ESTIMATE) == "0.914 [0.898, 0.928]"
    assert with_interval({**ESTIMATE, "low": None, "high": None}) == "0.914"
    assert with_interval({**ESTIMATE, "value": None}) == with_interval(None) == "-"
    assert (p_value(0.00009), p_value(0.0123456)) == ("< 0.0001", "0.0123")


def test_a_cell_cannot_end_its_row() -> None:
    assert table(("a", "b"), [("x|y", "one\ntwo")]) == (
        "| a | b |\n| :-- | --: |\n| x\\|y | one two |"
    )


def test_a_cell_from_outside_is_text() -> None:
    assert table_row(["a\\|b", "x\\", "one\r\ntwo"]) == "| a\\\\\\|b | x\\ | one two |"
    hostile = '<img src=x onerror="alert(1)"></td><!-- 1 < 2'
    shown = '| &lt;img src=x onerror="alert(1)">&lt;/td>&lt;!-- 1 < 2 |'
    assert table_row([hostile]) == shown
    assert table_row(["![x](http://a/b.png)"]) == "| ![x]&#40;http://a/b.png) |"
    assert table_row(["\x1b[31mred\u202e"]) == r"| \x1b[31mred\u202e |"


def test_names_from_outside_are_cells_of_the_page() -> None:
    examples, verdicts = evaluation(questions=10)
    names = ("items", "a|b", "keys")
    named = [
        example.model_copy(update={"metadata": {"domain": names[n % 3], "answerer": names[n % 3]}})
        for n, example in enumerate(examples)
    ]
    report = build_report(named, verdicts, seconds=0, command="custos eval x")
    page = render_markdown(report)
    assert "10 questions (30 scored) in 0.0 s.\n" in page
    for name in ("items", "a\\|b", "keys"):
        assert page.count(f"\n| {name} | 10 |") == 4  # domain, answerer, ranking, favour
