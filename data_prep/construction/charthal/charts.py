"""Which charts questions are written about: few subplots, every discipline, every chart type."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from judging.errors import CustosError
from judging.records import read_records

SUBPLOT_SHARES: Mapping[int, Fraction] = {1: Fraction(3, 5), 2: Fraction(2, 5)}
"""Charts with one and with two subplots, 3:2 (paper appendix A.1)."""

K = TypeVar("K", bound=Hashable)


class Chart(BaseModel):
    """A line of the file of charts."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(pattern=r"^\w[\w.-]*$")
    """Also the name of its picture in what is written."""
    images: tuple[str]
    """Its picture; in the file, relative to it."""
    num_subplots: int
    discipline: str
    chart_type: str

    @property
    def figure_path(self) -> str:
        """Where its picture goes, relative to the folder that is written."""
        return f"images/{self.id}{Path(self.images[0]).suffix.lower()}"


def load_charts(path: Path, bad_rows: list[str] | None = None) -> list[Chart]:
    """Read a JSONL, JSON or Parquet file of charts.

    Raises:
        CustosError: If the file cannot be read, an id occurs twice, or, when ``bad_rows`` is
            ``None``, on the first row that does not fit.
    """
    charts = [chart for _, chart in read_records(path, Chart, bad_rows)]
    if twice := [id for id, count in Counter(chart.id for chart in charts).items() if count > 1]:
        raise CustosError(f"{path}: field 'id': '{twice[0]}' occurs twice")
    return charts


def sample_charts(charts: Sequence[Chart], count: int, seed: int) -> list[Chart]:
    """Sample charts of one or two subplots, 3:2, and within each in proportion to disciplines.

    Every chart type that the pool holds stays in, as long as a chart of it can take the place of
    one with the same number of subplots, of its own discipline if possible, whose type is left
    without it.

    Args:
        charts: The pool; charts with more subplots are passed over.
        count: How many to sample.
        seed: Same seed, same charts.

    Returns:
        Charts in the order of the pool.

    Raises:
        CustosError: If the pool has too few charts of one or of two subplots.
    """
    rng = Random(seed)
    chosen: list[Chart] = []
    for num_subplots, wanted in divide(count, SUBPLOT_SHARES).items():
        strata: dict[str, list[Chart]] = defaultdict(list)
        for chart in charts:
            if chart.num_subplots == num_subplots:
                strata[chart.discipline].append(chart)
        found = sum(map(len, strata.values()))
        if found < wanted:
            raise CustosError(
                f"{count} charts take {wanted} with num_subplots {num_subplots}, there are {found}"
            )
        shares = {name: Fraction(len(own), found) for name, own in sorted(strata.items())}
        for discipline, number in divide(wanted, shares).items():
            chosen += rng.sample(strata[discipline], number)
    chosen = _keep_types(charts, chosen, rng)
    kept = {chart.id for chart in chosen}
    return [chart for chart in charts if chart.id in kept]


def divide(count: int, shares: Mapping[K, Fraction]) -> dict[K, int]:
    """Divide a whole number by shares that sum to one: largest remainders, first named first."""
    exact = {name: count * share for name, share in shares.items()}
    whole = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(shares, key=lambda name: whole[name] - exact[name])
    for name in by_remainder[: count - sum(whole.values())]:
        whole[name] += 1
    return whole


def _keep_types(charts: Sequence[Chart], chosen: list[Chart], rng: Random) -> list[Chart]:
    chosen = list(chosen)
    eligible = [chart for chart in charts if chart.num_subplots in SUBPLOT_SHARES]
    for missing in sorted({c.chart_type for c in eligible} - {c.chart_type for c in chosen}):
        counts = Counter(chart.chart_type for chart in chosen)
        swaps = [
            (new.discipline != old.discipline, rng.random(), place, new)
            for new in eligible
            if new.chart_type == missing
            for place, old in enumerate(chosen)
            if old.num_subplots == new.num_subplots and counts[old.chart_type] > 1
        ]
        if swaps:
            _, _, place, new = min(swaps, key=lambda swap: swap[:3])
            chosen[place] = new
    return chosen
