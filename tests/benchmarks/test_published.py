"""Published tables: their form, and every row against the papers.

Papers print cells apart by tabs, above the caption of their table.
"""

import hashlib
import json
import re
from collections.abc import Iterable

import pytest

from benchmarks.charthal import RELATIONS, TYPES
from benchmarks.framework.base import BENCHMARKS, Figure, PaperRow, PublishedTable, get_benchmark
from benchmarks.framework.estimates import OVERALL
from benchmarks.hieval import ERROR_ANALYSIS, TIME_AND_COST
from benchmarks.simplevqa.benchmark import BY_DOMAIN, BY_TASK
from benchmarks.truthfulvqa.benchmark import BY_CATEGORY, CATEGORIES, DECODINGS
from data_prep.construction.steps.simplevqa import DOMAINS, TASKS
from evaluation.ranking.bradley_terry import RATING_MEAN
from tests.published_files import needs_published, published

TABLES = [
    pytest.param(table, id=f"{benchmark.name} {table.source}")
    for benchmark in BENCHMARKS
    for table in benchmark.published
]
COST = re.compile(r"(\$[\d.]+)\(Q\)\+(\$[\d.]+)\(A\)")


def printed_lines(name: str, caption: str) -> list[list[str]]:
    """Return the cells of the lines above a caption, without their marks of style."""
    lines = published(f"{name}.txt").read_text(encoding="utf-8").splitlines()
    [end] = [number for number, line in enumerate(lines) if line.startswith(caption)]
    while not lines[end - 1].strip():
        end -= 1
    start = end
    while lines[start - 1].strip():
        start -= 1
    return [
        [re.sub(r"</?[bi]>|\\|\*\*", "", cell).strip() for cell in line.split("\t")]
        for line in lines[start:end]
    ]


def printed_rows(name: str, caption: str) -> dict[str, PaperRow]:
    """Return the rows of a table that hold figures, by their first cell."""
    rows = {first: tuple(map(figure, cells)) for first, *cells in printed_lines(name, caption)}
    # HiEval's Table 5 also prints how far its last row is ahead of the best other.
    return {
        name: row
        for name, row in rows.items()
        if any(isinstance(cell, float) for cell in row) and "vs Best" not in name
    }


def figure(cell: str) -> Figure:
    """Read a cell: a number, a cost, a word, or a dash for none."""
    if cell in ("", "-"):
        return None
    if cost := COST.fullmatch(cell):
        return f"{cost[1]} + {cost[2]}"
    try:
        return float(cell.replace(",", "").removesuffix("%"))
    except ValueError:
        return cell.lower()


def named(name: str, start: str) -> PublishedTable:
    """Return the published table of a benchmark whose source starts with a text."""
    [table] = [each for each in get_benchmark(name).published if each.source.startswith(start)]
    return table


@pytest.mark.parametrize("table", TABLES)
def test_rows_have_a_figure_for_every_column(table: PublishedTable) -> None:
    assert len(set(table.columns)) == len(table.columns)
    assert all(len(row) == len(table.columns) for row in table.rows.values())
    used = {table.ranked_by, table.corrected, *table.radar} - {None}
    assert used <= set(table.columns)


@pytest.mark.parametrize(
    ("name", "source", "columns"),
    [
        ("charthal", "Table 2", (*TYPES, *RELATIONS, OVERALL)),
        ("hieval", ERROR_ANALYSIS, (*TIME_AND_COST, "A-Acc", "S-Acc")),
        ("simplevqa", BY_TASK, ("CO", "NA", "IN", "CGA", "F", *TASKS)),
        ("simplevqa", BY_DOMAIN, DOMAINS),
        ("truthfulvqa", BY_CATEGORY, CATEGORIES),
    ],
)
def test_columns_stand_in_the_order_of_our_figures(
    name: str, source: str, columns: Iterable[str]
) -> None:
    [table] = [each for each in get_benchmark(name).published if each.source == source]
    assert table.columns[-len(tuple(columns)) :] == tuple(columns)


COMPARED = {
    "charthal": "65b55a5ba403111171fd89a305f7aeb92f01c5d92d1d09f53e21717b5bdbb8bf",
    "chartom": "5e40eef211c3b9c75f272523b71c44eaeea5acb7dc0539317a00bf17812bdf62",
    "hieval": "cb23294154633e098f044e662dc1da2739e44dcf053fb1208da694d61916559c",
    "simplevqa": "3e4e7c48dd6a88d5c5ba3b858ccf0cc105759766017444497dc2620734f48a5c",
    "truthfulvqa": "78b617de596acf65bd4754781693c905295c158365af0965edb2d568f411f594",
}
"""SHA-256 of the figures. To change one, compare the figures with the paper's text first: the tests
below that do it need the texts and do not run everywhere."""


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_figures_are_those_that_were_compared_with_the_papers(name: str) -> None:
    tables = get_benchmark(name).published
    assert len({table.source for table in tables}) == len(tables)
    figures = [list(table.rows.items()) for table in tables if table.rows]
    settings = [each.model_dump() for each in DECODINGS.values()] if name == "truthfulvqa" else []
    content = json.dumps([figures, settings])
    assert hashlib.sha256(content.encode()).hexdigest() == COMPARED[name]


ROWS = {
    "charthal": {"Table 1:": 5, "Table 2:": 19},
    "hieval": {f"Table {n}:": rows for n, rows in enumerate((2, 13, 12, 8, 8, 4, 10), 1)},
    "simplevqa": {"Table 3.": 18, "Table 4.": 18, "Table 5.": 7, "Table 6.": 8},
    "truthfulvqa": {"Table 1:": 5, "Table 2:": 2},
}
"""Benchmark to the captions of its tables and how many rows with figures the paper prints there."""


@pytest.mark.parametrize(
    ("name", "caption"),
    [
        pytest.param(name, caption, marks=needs_published(f"{name}.txt"))
        for name, captions in ROWS.items()
        for caption in captions
    ],
)
def test_the_rows_are_the_papers(name: str, caption: str) -> None:
    printed = printed_rows(name, caption)
    assert len(printed) == ROWS[name][caption]
    start = caption if name == "hieval" else caption[:-1]
    assert named(name, start).rows == printed


@needs_published("simplevqa.txt")
def test_the_columns_are_the_papers() -> None:
    for table, ends in (("Table 3", 9), ("Table 4", 9), ("Table 6", 4)):
        lines = printed_lines("simplevqa", f"{table}.")
        header = next(cells for cells in lines if "CO" in cells)
        assert [*named("simplevqa", table).columns[-ends:]] == header[-ends:]


@needs_published("chartom.txt")
def test_table_1_is_the_papers() -> None:
    line = re.compile(r"(\w+) (G\d+_Q1)_1 (0\.\d\d) \2_2 (.+) (0\.\d\d)")
    lines = published("chartom.txt").read_text(encoding="utf-8").splitlines()
    rows = {
        found[2]: (found[1], float(found[3]), found[4], float(found[5]))
        for found in map(line.fullmatch, lines)
        if found
    }
    assert len(rows) == 14
    assert named("chartom", "Table 1").rows == rows


@needs_published("chartom.txt")
def test_table_2_is_the_papers() -> None:
    lines = published("chartom.txt").read_text(encoding="utf-8").splitlines()
    answers, counts = (
        [line.split()[1:] for line in lines if re.match(rf"{word} \d", line)]
        for word in ("answer", "count")
    )
    printed = [
        ", ".join(f"{float(a):g} ({float(n):g})" for a, n in zip(*columns, strict=True))
        for columns in zip(answers, counts, strict=True)
    ]
    assert printed == [text for [text] in named("chartom", "Table 2").rows.values()]


def paper_text() -> str:
    return " ".join(published("truthfulvqa.txt").read_text(encoding="utf-8").split())


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
    found = re.search(sentence, paper_text())
    assert found is not None
    figures = [figure for row in named("truthfulvqa", source).rows.values() for figure in row]
    for number in (number for each in figures for number in re.findall(r"\d+\.\d+", str(each))):
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", found[0]), number


@needs_published("truthfulvqa.txt")
def test_the_decodings_are_table_5s() -> None:
    text = published("truthfulvqa.txt").read_text("utf-8")
    rows = re.findall(r"\t(\d+)\t([\d.]+)\t([\d.]+)$", text, re.MULTILINE)
    printed = {(int(limit), float(top_p), float(temp)) for limit, top_p, temp in rows}
    settings = DECODINGS.values()
    assert {(each.max_tokens, each.top_p, each.temperature) for each in settings} == printed


@needs_published("truthfulvqa.txt")
def test_the_categories_are_the_papers() -> None:
    assert len(CATEGORIES) == 8
    assert all(category in paper_text() for category in CATEGORIES)


def test_our_ratings_have_the_mean_of_the_published_ones() -> None:
    """Four of nine are known as a range, two of them its ends: so the mean lies between two."""
    rows = named("truthfulvqa", "Appendix E.4").rows.values()
    known = [rating for [rating] in rows if isinstance(rating, float)]
    ranges = {rating for [rating] in rows if isinstance(rating, str)}
    [[high, low]] = [map(float, ends.split(" to ")) for ends in ranges]
    means = [(sum(known) + high + low + 2 * end) / 9 for end in (low, high)]
    assert means[0] < RATING_MEAN < means[1]
    assert means[1] - means[0] < 20
