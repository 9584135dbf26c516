"""ChartHal's construction: sampled charts, questions that a model writes, and what people keep.

The charts are one's own or CharXiv's validation charts, which ChartHal samples from. A clone of
CharXiv's repository has three files about every chart, keyed by its number; its pictures come
apart, and go to ``images/``.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from clients.chat import Reply
from data_prep.construction.model_writer import ModelWriter, Request
from data_prep.construction.sheets import ANNOTATIONS, DIFFERS, Collected
from data_prep.construction.steps.base import Row
from data_prep.construction.steps.charthal import CELLS, ChartCell, QRelation, QType, WriteQuestion
from data_prep.splits.manifest import check_replaceable
from judging.errors import CustosError, FieldError
from judging.files.records import decode_json, read_records, write_json
from judging.types import parse_record

SUBPLOT_SHARES: Mapping[int, Fraction] = {1: Fraction(3, 5), 2: Fraction(2, 5)}
"""Charts with one and with two subplots, 3:2 (paper appendix A.1)."""
IMAGE_FOLDER = "images"
FILES = ("data/image_metadata_val.json", "data/descriptive_val.json", "data/chart_types_val.json")
"""Files of a clone of CharXiv: disciplines, numbers of subplots, and types of the charts."""
QUESTIONS = "questions.jsonl"
BENCHMARK, DISAGREEMENTS = "charthal.json", "disagreements.json"
STEP = WriteQuestion()

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
        """Name the path of its picture, relative to the folder that is written."""
        return f"{IMAGE_FOLDER}/{self.id}{Path(self.images[0]).suffix.lower()}"


class ChartQuestion(BaseModel):
    """A question as ChartHal's files hold it."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    id: str
    """``3_2`` is chart 3, cell 2."""
    figure_id: str
    figure_path: str
    subq_idx: int
    q_type: QType
    q_relation: QRelation
    question: str
    ref_answer: str


def load_charts(path: Path, bad_rows: list[str] | None = None) -> list[Chart]:
    """Read a file of charts; errors as :func:`read_records`, and for an id that occurs twice."""
    charts = [chart for _, chart in read_records(path, Chart, bad_rows)]
    for name, count in Counter(chart.id for chart in charts).items():
        if count > 1:
            raise FieldError("id", f"'{name}' occurs twice", str(path))
    return charts


def load_charxiv(folder: Path) -> list[Chart]:
    """Read the validation charts of a clone of CharXiv's repository.

    The discipline of a chart is the category of its paper. A chart that mixes types counts as one
    of the first type that CharXiv names. Raise ``CustosError`` if a file or a picture is missing,
    or a chart lacks something.
    """
    metadata, subplots, types = (_read_charxiv(folder / name) for name in FILES)
    charts = []
    for number, about in metadata.items():
        location = f"{folder}: chart {number}"
        picture = folder / IMAGE_FOLDER / f"{number}.jpg"
        if not picture.is_file():
            raise CustosError(
                f"{location}: no {picture}; unpack CharXiv's images.zip in {folder / IMAGE_FOLDER}"
            )
        fields = {
            "id": number,
            "images": (str(picture.resolve()),),
            "num_subplots": subplots.get(number, {}).get("num_subplots"),
            "discipline": about.get("category"),
            "chart_type": next(iter(types.get(number, {}).get("chart_types", ())), None),
        }
        charts.append(parse_record(Chart, fields, location))
    return charts


def _read_charxiv(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise CustosError(f"{path}: there is no such file; is this a clone of CharXiv?")
    try:
        records = decode_json(path.read_bytes())
    except CustosError as error:
        raise CustosError(f"{path}: {error}") from None
    if not isinstance(records, dict) or not all(isinstance(row, dict) for row in records.values()):
        raise CustosError(f"{path}: expected an object of charts by number")
    return records


def sample_charts(charts: Sequence[Chart], count: int, seed: int) -> list[Chart]:
    """Sample charts of one or two subplots, 3:2, and within each in proportion to disciplines.

    Every chart type of the pool is in the sample, as far as possible: a chart of a missing type
    replaces one with the same number of subplots, and of its own discipline if there is one, whose
    type remains without it. Charts with more subplots are passed over; the order is the pool's.
    Raise ``CustosError`` if the pool has too few charts of one or of two subplots.
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
        shares = {name: Fraction(len(strata[name]), available) for name in sorted(strata)}
        for discipline, number in divide(num_charts, shares).items():
            sample += rng.sample(strata[discipline], number)
    _exchange_for_missing_types(charts, sample, rng)
    sampled_ids = {chart.id for chart in sample}
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


def _exchange_for_missing_types(charts: Sequence[Chart], sample: list[Chart], rng: Random) -> None:
    """Exchange charts of a sample so that it holds the types that it lacks."""
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


def generate_questions(charts: Sequence[Chart], writer: ModelWriter) -> dict[str, Any]:
    """Have a model write one question per chart and cell; return the manifest.

    The folder gets ``images/`` and ``questions.jsonl``. Raise ``CustosError`` as ``run_job``, and
    if a picture cannot be copied.
    """
    check_replaceable(writer.out, [QUESTIONS])
    (writer.out / IMAGE_FOLDER).mkdir(parents=True, exist_ok=True)
    requests = []
    for chart in charts:
        try:
            shutil.copyfile(chart.images[0], writer.out / chart.figure_path)
        except OSError as error:
            raise FieldError("images", str(error), f"chart '{chart.id}'") from None
        for number, cell in enumerate(CELLS):
            fields: Row = {
                "id": f"{chart.id}_{number}",
                "images": chart.images,
                "figure_id": chart.id,
                "figure_path": chart.figure_path,
                "subq_idx": number,
            }
            row = ChartCell(**fields, **cell._asdict())
            requests.append(Request(STEP.item(row), partial(_read_question, row)))
    outcome = writer.ask(requests, mend=True)
    counts = {"charts": len(charts), "counts": count_cells(outcome.records)}
    return writer.write(outcome, {QUESTIONS: outcome.records}, counts)


def _read_question(cell: ChartCell, reply: Reply) -> ChartQuestion:
    [row] = STEP.read(cell, reply)
    return _question_of(row)


def _question_of(row: Row) -> ChartQuestion:
    return ChartQuestion.model_validate({name: row[name] for name in ChartQuestion.model_fields})


def count_cells(questions: Sequence[ChartQuestion]) -> dict[str, int]:
    """Count questions by cell, ``desc/irrel`` and so on, all twelve in ChartHal's order."""
    counts = Counter((question.q_type, question.q_relation) for question in questions)
    return {"/".join(cell): counts[cell] for cell in CELLS}


def rows_to_check(folder: Path) -> list[Row]:
    """Read the questions that ``generate_questions`` wrote to a folder, with their charts."""
    return [
        {**question.model_dump(), "images": [str((folder / question.figure_path).resolve())]}
        for _, question in read_records(folder / QUESTIONS, ChartQuestion)
    ]


def write_benchmark(folder: Path, collected: Collected) -> list[ChartQuestion]:
    """Write the questions that people kept, and those left to settle, beside the pictures.

    ``charthal.json`` is ChartHal's own shape, an object from id to item; ``disagreements.json``
    lists the questions that people differ on: ``id`` and, by field, everybody's version. Return the
    questions that were kept.
    """
    kept = [_question_of(row) for row in collected.rows]
    items = {question.id: question.model_dump(exclude={"id"}) for question in kept}
    write_json(folder / BENCHMARK, items)
    differing = [
        {
            "id": row["id"],
            **{
                name: {person: each.get(name, "") for person, each in row[ANNOTATIONS].items()}
                for name in row[DIFFERS]
            },
        }
        for row in collected.disagreements
    ]
    write_json(folder / DISAGREEMENTS, differing)
    return kept
