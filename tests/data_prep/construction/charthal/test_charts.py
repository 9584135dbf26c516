from collections import Counter
from pathlib import Path

import pytest

from data_prep.construction.charthal import load_charts, sample_charts
from judging.errors import CustosError, FieldError
from tests.data_prep.construction.charthal.examples import chart

POOL = [
    chart(
        number, 1 + number % 3, "cs" if number % 4 else "physics", "bar" if number % 7 else "line"
    )
    for number in range(300)
]


def test_subplots_three_to_two_and_disciplines_in_proportion() -> None:
    chosen = sample_charts(POOL, 50, seed=1)
    assert Counter(c.num_subplots for c in chosen) == {1: 30, 2: 20}
    for subplots, count in ((1, 30), (2, 20)):
        pool = [c for c in POOL if c.num_subplots == subplots]
        share = sum(c.discipline == "physics" for c in pool) / len(pool)
        num_physics = sum(c.discipline == "physics" for c in chosen if c.num_subplots == subplots)
        assert abs(num_physics - count * share) < 1
    assert chosen == sample_charts(POOL, 50, seed=1)
    assert chosen != sample_charts(POOL, 50, seed=2)
    assert len({c.id for c in chosen}) == 50


def test_every_chart_type_stays_in() -> None:
    rare = chart(999, 2, "physics", "radar")
    for seed in range(10):
        chosen = sample_charts([*POOL, rare], 10, seed)
        assert rare in chosen
        assert Counter(c.num_subplots for c in chosen) == {1: 6, 2: 4}
        assert sum(c.discipline == "physics" for c in chosen) in (2, 3)


def test_too_few_charts() -> None:
    with pytest.raises(CustosError, match="10 charts take 6 with num_subplots 1, there are 2"):
        sample_charts(POOL[:6], 10, seed=0)


def test_an_id_that_occurs_twice(tmp_path: Path) -> None:
    path = tmp_path / "charts.jsonl"
    path.write_text(f"{POOL[0].model_dump_json()}\n" * 2)
    with pytest.raises(FieldError, match=r"charts\.jsonl: field 'id': '0' occurs twice"):
        load_charts(path)
