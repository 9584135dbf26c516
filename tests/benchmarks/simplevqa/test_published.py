"""Every row of SimpleVQA's tables of figures against the paper's text."""

from __future__ import annotations

import pytest

from benchmarks.simplevqa.published import BY_TASK, PUBLISHED
from tests.benchmarks.printed_tables import named, printed_lines, printed_rows
from tests.published_files import needs_published, published

PAPER = published("simplevqa.txt")


@needs_published("simplevqa.txt")
@pytest.mark.parametrize(
    ("table", "num_rows"), [("Table 3", 18), ("Table 4", 18), ("Table 5", 7), ("Table 6", 8)]
)
def test_the_rows_are_the_papers(table: str, num_rows: int) -> None:
    printed = printed_rows(PAPER, f"{table}.")
    assert len(printed) == num_rows
    assert named(PUBLISHED, table).rows == printed


@needs_published("simplevqa.txt")
def test_the_columns_are_the_papers() -> None:
    for table, ends in (("Table 3", 9), ("Table 4", 9), ("Table 6", 4)):
        header = next(cells for cells in printed_lines(PAPER, f"{table}.") if "CO" in cells)
        assert [*named(PUBLISHED, table).columns[-ends:]] == header[-ends:]


def test_statistics_are_in_per_cent() -> None:
    """``tests/data_prep/construction/test_simplevqa.py`` reads them in the paper."""
    [shares] = named(PUBLISHED, "Table 2 (%)").rows.values()
    assert (shares[0], shares[-1]) == (5.04, 13.58)
    assert sum(float(str(share)) for share in shares) == pytest.approx(200, abs=0.1)
    assert named(PUBLISHED, "Table 2: items").rows["Data"] == (2025,)


def test_figures_fit_each_other() -> None:
    for name, figures in named(PUBLISHED, BY_TASK).rows.items():
        co, na, wrong, cga, f = (float(str(figure)) for figure in figures[:5])
        # The paper's row of Doubao-vision-pro-32k adds up to 100.4.
        assert co + na + wrong == pytest.approx(100, abs=0.5 if "32k" in name else 0.2)
        assert 100 * co / (co + wrong) == pytest.approx(cga, abs=0.45 if "32k" in name else 0.15)
        assert 2 * co * cga / (co + cga) == pytest.approx(f, abs=0.35)
