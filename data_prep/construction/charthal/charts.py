"""Charts that questions are written about: few subplots, every discipline, every chart type."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from judging.errors import CustosError, FieldError
from judging.files.records import read_records

SUBPLOT_SHARES: Mapping[int, Fraction] = {1: Fraction(3, 5), 2: Fraction(2, 5)}
"""Charts with one and with two subplots, 3:2 (paper appendix A.1)."""
IMAGE_FOLDER = "images"

K = TypeVar("K", bound=Hashable)


class Chart(BaseModel):
    """A line of the file of charts."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(pattern=r"^\w[\w.-]*$")
    """Also the name of its picture in the folder that is written."""
    images: tuple[str]
    """Its picture; in the file, relative to the file."""
    num_subplots: int
    discipline: str
    chart_type: str

    @property
    def figure_path(self) -> str:
        """Return the path of its picture, relative to the folder that is written."""
        return f"{IMAGE_FOLDER}/{self.id}{Path(self.images[0]).suffix.lower()}"

    def question_id(self, number: int) -> str:
        """Return the id of the question for a cell: ``3_2`` is chart 3, cell 2."""
        return f"{self.id}_{number}"


def load_charts(path: Path, bad_rows: list[str] | None = None) -> list[Chart]:
    """Read a JSONL, JSON or Parquet file of charts.

    Args:
        path: File of charts.
        bad_rows: List that errors of rows are added to; ``None`` raises the first error.

    Raises:
        CustosError: If the file cannot be read, an id occurs twice, or, when ``bad_rows`` is
            ``None``, on the first row that does not fit.
    """
    charts = [chart for _, chart in read_records(path, Chart, bad_rows)]
    counts = Counter(chart.id for chart in charts)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise FieldError("id", f"'{repeated[0]}' occurs twice", str(path))
    return charts


def sample_charts(charts: Sequence[Chart], count: int, seed: int) -> list[Chart]:
    """Sample charts of one or two subplots, 3:2, and within each in proportion to disciplines.

    Every chart type of the pool is in the sample, as far as possible: a chart of a missing type
    replaces one with the same number of subplots, and of its own discipline if there is one, whose
    type remains without it.

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
    sample: list[Chart] = []
    for num_subplots, num_charts in divide(count, SUBPLOT_SHARES).items():
        strata: dict[str, list[Chart]] = defaultdict(list)
        for chart in charts:
            if chart.num_subplots == num_subplots:
                strata[chart.discipline].append(chart)
        available = sum(map(len, strata.values()))
        if available < num_charts:
            raise CustosError(
                f"{count} charts take {num_charts} with num_subplots {num_subplots}, "
                f"there are {available}"
            )
        shares = {
            discipline: Fraction(len(members), available)
            for discipline, members in sorted(strata.items())
        }
        for discipline, number in divide(num_charts, shares).items():
            sample += rng.sample(strata[discipline], number)
    sampled_ids = {chart.id for chart in _with_every_type(charts, sample, rng)}
    return [chart for chart in charts if chart.id in sampled_ids]


def divide(count: int, shares: Mapping[K, Fraction]) -> dict[K, int]:
    """Divide a whole number by shares that sum to one, by largest remainders.

    Equal remainders are served in the order of the shares.
    """
    exact = {name: count * share for name, share in shares.items()}
    whole = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(shares, key=lambda name: whole[name] - exact[name])
    for name in by_remainder[: count - sum(whole.values())]:
        whole[name] += 1
    return whole


def _with_every_type(charts: Sequence[Chart], sample: list[Chart], rng: Random) -> list[Chart]:
    """Exchange charts of a sample so that it holds the types that it lacks."""
    sample = list(sample)
    eligible = [chart for chart in charts if chart.num_subplots in SUBPLOT_SHARES]
    for missing in sorted({c.chart_type for c in eligible} - {c.chart_type for c in sample}):
        counts = Counter(chart.chart_type for chart in sample)
        exchanges = [
            (new.discipline != old.discipline, rng.random(), position, new)
            for new in eligible
            if new.chart_type == missing
            for position, old in enumerate(sample)
            if old.num_subplots == new.num_subplots and counts[old.chart_type] > 1
        ]
        if exchanges:
            _, _, position, new = min(exchanges, key=lambda exchange: exchange[:3])
            sample[position] = new
    return sample
