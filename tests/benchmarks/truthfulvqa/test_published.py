"""TruthfulVQA's figures against the paper's text: its tables, and sentences that hold figures."""

from __future__ import annotations

import re

import pytest

from benchmarks.truthfulvqa.benchmark import CATEGORIES, DECODINGS, PUBLISHED
from evaluation.ranking.bradley_terry import RATING_MEAN
from tests.benchmarks.printed_tables import named, printed_rows
from tests.published_files import needs_published, published

PAPER = published("truthfulvqa.txt")


def text() -> str:
    return " ".join(PAPER.read_text(encoding="utf-8").split())


@needs_published("truthfulvqa.txt")
@pytest.mark.parametrize(("table", "num_rows"), [("Table 1", 5), ("Table 2", 2)])
def test_the_rows_are_the_papers(table: str, num_rows: int) -> None:
    printed = printed_rows(PAPER, f"{table}:")
    assert len(printed) == num_rows
    assert named(PUBLISHED, table).rows == printed


@needs_published("truthfulvqa.txt")
@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "Figure 3b",
            r"Level-1 \(81.85%\) to Level-2 \(55.37%\), and further to Level-3 \(44.96%\)",
        ),
        ("Figure 3c", r"mean range of 0.68-0.79 and a variance range of 0.01-0.03 \(Figure 3c\)"),
        (
            "Section 4.2",
            "0.89 for QVQ-72B, 0.71 for Mulberry-Qwen2-VL-7B, and 0.53 for Kimi-VL-A3B-Thinking",
        ),
        (
            "Figure 4a",
            "within 0.16–0.25, .* Qwen2.5-VL-72B attains 0.188 .* QVQ-72B rises to 0.325",
        ),
        ("Figure 4b", "all five chat models degrade by 2.8 to 8.3 percentage points"),
        (
            "Figure 5",
            "GPT-4o achieving a 40.4% win rate compared to Qwen2.5-VL-72B-Instruct’s 59.6%.*"
            r"GPT-4o \(51.4% vs 48.6%\).*judging the GPT-4o to win by 0.6%",
        ),
        ("Section 5.4", "consistently higher, ranging from 0.89 to 0.91"),
        (
            "Appendix E.4",
            "Claude-3.5-Sonnet and Qwen2.5-VL-72B-Instruct .* 1618.5 and 1613.3.*"
            "GPT-4o follows with a rating of 1581.2.*Qwen2-VL-7B-GRPO and LLaVA-Mistral-7B .* "
            "1531.0 and 1512.1.*LLaVA-1.5, Gemini-2.5-Pro-Exp, InternVL2.5-38B, and QVQ-72B .* "
            "ranging from 1440.7 to 1368.8",
        ),
    ],
)
def test_the_sentences_are_the_papers(source: str, sentence: str) -> None:
    found = re.search(sentence, text())
    assert found is not None
    figures = [figure for row in named(PUBLISHED, source).rows.values() for figure in row]
    for number in (number for each in figures for number in re.findall(r"\d+\.\d+", str(each))):
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", found[0]), number


@needs_published("truthfulvqa.txt")
def test_the_decodings_are_table_5s() -> None:
    rows = re.findall(r"\t(\d+)\t([\d.]+)\t([\d.]+)$", PAPER.read_text("utf-8"), re.MULTILINE)
    printed = {(int(limit), float(top_p), float(temp)) for limit, top_p, temp in rows}
    settings = DECODINGS.values()
    assert {(each.max_tokens, each.top_p, each.temperature) for each in settings} == printed


@needs_published("truthfulvqa.txt")
def test_the_categories_are_the_papers() -> None:
    assert len(CATEGORIES) == 8
    assert all(category in text() for category in CATEGORIES)


def test_our_ratings_have_the_mean_of_the_published_ones() -> None:
    """Four of nine are known as a range, two of them its ends: so the mean lies between two."""
    rows = named(PUBLISHED, "Appendix E.4").rows.values()
    known = [rating for [rating] in rows if isinstance(rating, float)]
    ranges = {rating for [rating] in rows if isinstance(rating, str)}
    [[high, low]] = [map(float, ends.split(" to ")) for ends in ranges]
    means = [(sum(known) + high + low + 2 * end) / 9 for end in (low, high)]
    assert means[0] < RATING_MEAN < means[1]
    assert means[1] - means[0] < 20
